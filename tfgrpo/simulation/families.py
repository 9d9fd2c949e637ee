"""The kinds of task a world can have: their words, and the shape of a right answer.

Their texts name no behaviour of the vocabulary; which rules a family needs is drawn by the world.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

ANSWER_LINE = "End with a line of the form `Answer: ...` that holds nothing else."


@dataclass(frozen=True, slots=True)
class Theme:
    """What a family of tasks is about. `prefix` starts the reference of each of its tasks."""

    name: str
    prefix: str
    answer: Literal["number", "code"]
    questions: tuple[str, ...]


THEMES: tuple[Theme, ...] = (
    Theme(
        "freight",
        "FR",
        "code",
        (
            "Shipment {ref} left {place} with {a} crates, {b} of them fragile. What is its release code?",
            "The driver of shipment {ref} waits in {place} with {a} crates and {b} pallets. Give the release code.",
            "Freight desk, {place}: shipment {ref} holds {a} crates. What is its release code after {b} days in store?",
        ),
    ),
    Theme(
        "payroll",
        "PY",
        "number",
        (
            "Payslip {ref} from the {place} office covers {a} hours and {b} hours of overtime. What is the net pay?",
            "Work out the net pay on payslip {ref}: {a} hours at the {place} branch, {b} of them at night.",
            "A nurse in {place} doubts payslip {ref}, with {a} hours and {b} days of leave. What should be paid out?",
        ),
    ),
    Theme(
        "greenhouse",
        "GH",
        "number",
        (
            "Greenhouse {ref} near {place} has {a} rows of tomatoes on {b} benches. How many litres does it take?",
            "How many litres of water does greenhouse {ref} in {place} take, with {a} rows and {b} sprinklers?",
            "Plan the watering of greenhouse {ref}: {a} rows, {b} sprinklers, {place} climate. How many litres?",
        ),
    ),
    Theme(
        "library desk",
        "LB",
        "code",
        (
            "A reader in {place} returned loan {ref} {a} days late with {b} others. Which settlement code applies?",
            "Loan {ref} at the {place} branch is {a} days late; the reader has {b} loans. Give the settlement code.",
            "Which settlement code closes loan {ref}? It was lent for {a} days in {place} and renewed {b} times.",
        ),
    ),
    Theme(
        "railway",
        "RW",
        "number",
        (
            "Train {ref} leaves {place} with {a} passengers and stops {b} times. At which minute does it arrive?",
            "Timetable of train {ref}: {b} stops after {place}, {a} passengers. In which minute does it arrive?",
            "The board in {place} shows train {ref} with {a} seats sold and {b} stops. In which minute is it due?",
        ),
    ),
    Theme(
        "pharmacy",
        "RX",
        "number",
        (
            "Prescription {ref} from {place} asks for {a} tablets over {b} days. How many packs are dispensed?",
            "How many packs does the {place} pharmacy hand out for prescription {ref}, {a} tablets in {b} days?",
            "A patient in {place} brings prescription {ref}: {a} tablets, {b} refills. How many packs?",
        ),
    ),
    Theme(
        "helpdesk",
        "HD",
        "code",
        (
            "Call {ref} from {place}: the printer failed {a} times in {b} days. Which repair code should be booked?",
            "A colleague in {place} opened call {ref} after {a} crashes on {b} machines. Give the repair code.",
            "Which repair code fits call {ref}? Site {place}, {a} users, {b} of them offline.",
        ),
    ),
    Theme(
        "bakery",
        "BK",
        "number",
        (
            "Batch {ref} at the {place} bakery makes {a} loaves in {b} ovens. How many kilos of flour does it take?",
            "How many kilos of flour go into batch {ref} for {a} loaves and {b} trays of rolls, {place} recipe?",
            "The {place} bakery plans batch {ref}: {a} loaves by {b} bakers. How much flour, in kilos?",
        ),
    ),
    Theme(
        "survey",
        "SV",
        "code",
        (
            "Plot {ref} outside {place} has {a} corners and {b} neighbours. Which registry code does it get?",
            "Give the registry code of plot {ref}, measured in {place} from {a} points on {b} days.",
            "The {place} land office files plot {ref} with {a} points and {b} owners. Under which registry code?",
        ),
    ),
    Theme(
        "theatre",
        "TH",
        "number",
        (
            "Show {ref} in {place} sold {a} seats over {b} evenings. What does the house take?",
            "What does the {place} theatre take with show {ref}, {a} seats on {b} evenings?",
            "The box office of {place} closes show {ref} after {b} evenings and {a} guests. What was taken?",
        ),
    ),
)

PLACES = (
    "Aalborg",
    "Bergamo",
    "Cadiz",
    "Dresden",
    "Evora",
    "Fribourg",
    "Ghent",
    "Haarlem",
    "Izmir",
    "Jena",
    "Kaunas",
    "Lviv",
)

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def question(theme: Theme, ref: str, rng: random.Random) -> str:
    """The text of the task `ref`, with invented circumstances."""
    text = rng.choice(theme.questions)
    filled = text.format(ref=ref, place=rng.choice(PLACES), a=rng.randint(12, 480), b=rng.randint(2, 11))
    return f"{filled} {ANSWER_LINE}"


def right_answer(theme: Theme, rng: random.Random) -> str:
    """An invented answer of the family's shape."""
    if theme.answer == "number":
        return str(rng.randint(120, 9_870))
    return f"{rng.choice(_LETTERS)}{rng.choice(_LETTERS)}{rng.randint(100, 999)}"


def wrong_answer(right: str, rng: random.Random) -> str:
    """A plausible other answer: one digit of the right one is off."""
    at = rng.choice([at for at, letter in enumerate(right) if letter.isdigit()])
    others = [digit for digit in "123456789" if digit != right[at]]
    return right[:at] + rng.choice(others) + right[at + 1 :]
