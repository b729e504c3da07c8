package worker

import (
	"slices"
	"strings"
	"unicode"
)

// What makes a variable's name mean a secret value: anywhere in it, as a word of it, or as the
// end of a word, except for words with that ending that mean something else.
var (
	secretParts    = []string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATEKEY", "ACCESSKEY"}
	secretWords    = []string{"KEY", "AUTH", "AUTHORIZATION", "COOKIE", "DSN", "PAT", "PASS", "PWD", "PW", "CRED", "JWT", "BEARER", "PEM"}
	secretEnds     = []string{"KEY", "PWD", "PASS", "DSN", "PAT", "JWT"}
	harmlessWords  = []string{"MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "LACKEY", "HOTKEY", "PUBKEY", "BYPASS", "COMPASS", "SURPASS", "TRESPASS", "OVERPASS", "UNDERPASS", "OLDPWD", "SPAT", "COMPAT"}
	harmlessWholes = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"} // folders and a path
)

// looksSecret reports whether a variable of that name is taken to hold a secret.
func looksSecret(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(harmlessWholes, upper) {
		return false
	}
	for _, part := range secretParts {
		if strings.Contains(strings.ReplaceAll(upper, "_", ""), part) {
			return true
		}
	}
	return slices.ContainsFunc(wordsOf(name), secretWord)
}

// looksWebhook reports whether a variable of that name is taken to hold an address that
// is a secret by itself.
func looksWebhook(name string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToUpper(name), "_", ""), "WEBHOOK")
}

// callsSecret reports whether what stands beside a name within a value is taken to be a
// secret: the last word says what it is. A plain key, or a signature, may be anything that
// isn't random.
func callsSecret(name, text string) bool {
	words := wordsOf(name)
	if len(words) == 0 {
		return false
	}
	switch last := words[len(words)-1]; {
	case last == "SIG", last == "SIGNATURE", last == "KEY" && len(words) == 1:
		return tokenLike(text)
	default:
		return looksSecret(last)
	}
}

// wordsOf splits a name at everything that isn't a letter, digits included, and where a small
// letter is followed by a capital.
func wordsOf(name string) []string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return strings.Fields(strings.ToUpper(b.String()))
}

func secretWord(word string) bool {
	for _, w := range []string{word, strings.TrimSuffix(word, "S")} {
		if slices.Contains(harmlessWords, w) {
			return false
		}
		if slices.Contains(secretWords, w) || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(w, end) }) {
			return true
		}
	}
	return false
}
