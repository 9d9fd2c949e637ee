"""What the product costs, measured on the machine at hand. Nothing here runs in the test suite."""
