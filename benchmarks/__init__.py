"""What the product costs, measured on the machine at hand. The test suite runs its parts, never a measurement."""
