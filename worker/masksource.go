package worker

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const (
	secretLeast = 6 // bytes; shorter values would blot out ordinary words
	partLeast   = 12
	opaqueLeast = 20 // of a value that no name calls a secret
)

// secretsOf picks the texts that must not appear in anything that leaves the worker: the
// values of variables whose names say so, known secrets within other values, and extra values,
// each as written and in the forms that programs print it in. The longest come first.
func secretsOf(env []string, extra ...string) [][]byte {
	var f found
	for _, v := range extra {
		f.add(v)
		f.lines(v)
	}
	for _, assignment := range env {
		name, value, ok := strings.Cut(assignment, "=")
		if !ok {
			continue
		}
		if looksSecret(name) {
			f.secret(value)
		}
		if name == "STINT_PROMPT" || name == "STINT_INSTRUCTIONS" {
			continue // people write about secrets there
		}
		if looksWebhook(name) {
			f.webhook(value)
		}
		f.within(value)
	}
	return longestFirst(f)
}

// found are secrets in all of their forms.
type found [][]byte

func (f *found) add(v string) {
	if v = strings.TrimSpace(v); len(v) >= secretLeast {
		*f = append(*f, forms(v)...)
	}
}

// secret adds a value that is secret, and its parts, which programs use one by one: the
// lines of a key, the keys of a list, the password of a login, what a document says.
func (f *found) secret(value string) {
	f.add(value)
	f.lines(value)
	if f.document(value, true) {
		return
	}
	f.login(value)
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' }) {
		if part != value && len(part) >= partLeast { // API_KEYS may hold several
			f.add(part)
			f.login(part)
		}
	}
}

// lines adds the lines of a secret that has several, such as a private key, except those that
// say what it is.
func (f *found) lines(value string) {
	if !strings.Contains(value, "\n") {
		return
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= partLeast && !strings.HasPrefix(line, "-----") {
			f.add(line)
		}
	}
}

// login adds the password in what is written user:password, plain or in base64, and what
// follows the name of a scheme, as in a header.
func (f *found) login(value string) {
	value = strings.TrimSpace(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && slices.Contains([]string{"basic", "bearer", "token", "digest"}, strings.ToLower(scheme)) {
		value = strings.TrimSpace(rest)
		f.add(value)
	}
	if _, password, ok := strings.Cut(value, ":"); ok && !strings.HasPrefix(password, "//") {
		f.add(password)
	}
	if plain := decoded(value); strings.Contains(plain, ":") {
		f.secret(plain)
	}
}

// decoded is the text that a value encodes in base64, "" when it doesn't.
func decoded(value string) string {
	value = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "").Replace(value), "=")
	b, err := base64.RawStdEncoding.DecodeString(value)
	if err != nil || !utf8.Valid(b) || strings.ContainsFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	return string(b)
}

// document adds what a JSON document calls a secret, and reports whether the value is such a
// document. List elements go by the list's name, the outermost value by its variable's.
func (f *found) document(value string, secret bool) bool {
	if value = strings.TrimSpace(value); !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
		return false
	}
	var root any
	if json.Unmarshal([]byte(value), &root) != nil {
		return false
	}
	f.walk(root, secret)
	return true
}

func (f *found) walk(node any, secret bool) {
	switch node := node.(type) {
	case string:
		if secret {
			f.secret(node)
		}
	case []any:
		for _, inner := range node {
			f.walk(inner, secret)
		}
	case map[string]any:
		for name, inner := range node {
			text, _ := inner.(string)
			// Keys may be listed under their holders' names.
			opaque := secret && len(text) >= opaqueLeast && tokenLike(text) && !strings.ContainsAny(text, "/@.:")
			f.walk(inner, opaque || callsSecret(name, text))
		}
	}
}

// webhook adds URLs whose path alone gives the right to post there.
func (f *found) webhook(value string) {
	for _, field := range fieldsOf(value) {
		u, err := url.Parse(field)
		if err != nil || u.Host == "" || len(u.Path) < 2 {
			continue
		}
		f.add(field)
		for _, part := range []string{u.RequestURI(), u.Path, u.Path[strings.LastIndex(u.Path, "/")+1:]} {
			if len(part) >= partLeast {
				f.add(part)
			}
		}
	}
}

// within adds what is secret in any value: logins in URLs, and what is named a secret in a
// URL, a connection string, a header or a document.
func (f *found) within(value string) {
	f.document(value, false)
	for line := range strings.Lines(value) {
		if name, text, ok := strings.Cut(line, ": "); ok && !strings.Contains(name, " ") && callsSecret(name, text) {
			f.secret(text)
		}
	}
	for _, field := range fieldsOf(value) {
		for at := field; ; {
			scheme, rest, ok := strings.Cut(at, "://")
			if !ok {
				break
			}
			f.address(scheme, rest)
			at = rest
		}
		for _, part := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune("?&#;", r) }) {
			if name, text, ok := strings.Cut(part, "="); ok && callsSecret(name, text) {
				f.secret(text)
				f.secret(unescaped(text))
			}
		}
	}
}

// address adds the login of a URL: its password, and a token in the user's place.
func (f *found) address(scheme, rest string) {
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	at := strings.LastIndexByte(host, '@')
	if at < 0 {
		return
	}
	user, password, both := strings.Cut(host[:at], ":")
	web := strings.HasSuffix(strings.ToLower(scheme), "http") || strings.HasSuffix(strings.ToLower(scheme), "https")
	token := tokenLike(user) || web && password == "" && len(user) >= partLeast
	if token && !strings.Contains(unescaped(user), "@") {
		f.add(user)
		f.add(unescaped(user))
	}
	switch {
	case !both || password == "":
	case len(password) < secretLeast:
		f.add(host[:at]) // too short by itself
	default:
		f.add(password)
		f.add(unescaped(password))
	}
}

// tokenLike reports whether a text looks like a token rather than a name.
func tokenLike(text string) bool {
	return len(text) >= partLeast && strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, unicode.IsLetter) && !strings.Contains(text, " ")
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// fieldsOf splits a value into the things that stand side by side in it.
func fieldsOf(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,"'`, r) })
}
