"""What a workflow is: its steps, their order and types, and how it is written down."""
