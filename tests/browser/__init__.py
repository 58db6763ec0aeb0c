"""The web page as a person has it: a real Chromium, a real product, a local Slack. Run by `./dev browser`."""
