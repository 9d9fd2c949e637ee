// The SDKs for JavaScript, each with a tool, streamed and not, and a further turn.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { Agent, run, tool, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from "@openai/agents";
import { z } from "zod";

const { ROOT, KEY } = process.env;
const say = (...what) => console.log(JSON.stringify(what));
const openai = new OpenAI({ baseURL: `${ROOT}/v1`, apiKey: KEY });
const anthropic = new Anthropic({ baseURL: ROOT, apiKey: KEY });

const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
const add = { name: "add", description: "Adds.", parameters, parse: JSON.parse, function: ({ a, b }) => String(a + b) };
for (const stream of [false, true]) {
  const messages = [{ role: "user", content: `chat ${stream}` }];
  const runner = openai.chat.completions.runTools({ model: "gpt-5", stream, messages, tools: [{ type: "function", function: add }] });
  say("runTools", stream, await runner.finalContent(), runner.messages.length);
}

const offered = [{ type: "function", name: "add", parameters, strict: false }];
const answered = await openai.responses.stream({ model: "gpt-5", input: "responses", tools: offered }).finalResponse();
say("responses", answered.output);

let messages = [{ role: "user", content: "messages" }];
for (let turn = 0; turn < 3; turn++) {
  const asked = { model: "claude-x", max_tokens: 99, system: "Be brief.", messages };
  const said = await anthropic.messages.stream({ ...asked, tools: [{ name: "add", input_schema: { type: "object" } }] }).finalMessage();
  say("messages", said.content);
  const result = { type: "tool_result", tool_use_id: said.content.at(-1).id, content: "3" };
  messages = [...messages, { role: "assistant", content: said.content }, { role: "user", content: said.stop_reason === "tool_use" ? [result] : "thanks" }];
}
say("count", await anthropic.messages.countTokens({ model: "claude-x", messages }));

setTracingDisabled(true);
setDefaultOpenAIClient(openai);
const adder = tool({ name: "add", description: "Adds.", parameters: z.object({ a: z.number(), b: z.number() }), execute: async ({ a, b }) => String(a + b) });
for (const api of ["responses", "chat_completions"]) {
  setOpenAIAPI(api);
  const agent = new Agent({ name: "agent", instructions: "Be brief.", model: "gpt-5", tools: [adder] });
  const first = await run(agent, `agents ${api}`);
  say(api, first.finalOutput);
  say((await run(agent, [...first.history, { role: "user", content: "again" }])).finalOutput);
  const streamed = await run(agent, `agents streamed ${api}`, { stream: true });
  for await (const _ of streamed);
  await streamed.completed;
  say(streamed.finalOutput);
}
