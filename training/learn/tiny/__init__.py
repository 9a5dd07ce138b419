"""`tiny`: the small Llama that tests and quick trials train, and the games it is pretrained on."""
