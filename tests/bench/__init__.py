"""What the product costs beside the least that storage could do: `./dev bench engine`. Nothing here asserts a speed."""
