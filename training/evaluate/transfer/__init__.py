"""Transfer to multi-agent systems: questions with known answers, put to one model, a debate or a chat."""
