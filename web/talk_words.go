package web

func speaker(who string) string {
	if who == "" {
		return "You"
	}
	return who
}

func toolName(name string) string {
	if name == "" {
		return "Tool"
	}
	return firstLine(name, 60)
}

func answered(text string) string {
	if text == "" {
		return "Closed without an answer."
	}
	return PlainText(text)
}

func turnWords(text string) string {
	if text == "" {
		return "End of turn"
	}
	return firstLine(text, 120)
}
