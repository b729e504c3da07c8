package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const longestName = 64

// Name is the name of the folder for a key, always the same for the same key: the key itself
// where it is plain, else its plain characters with part of its hash, so that no two keys
// share one. It can also end the name of a branch.
func Name(key string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, key)
	for strings.Contains(plain, "..") {
		plain = strings.ReplaceAll(plain, "..", "._")
	}
	plain = strings.TrimLeft(plain, ".-")
	fits := plain != "" && len(plain) <= longestName && !strings.HasSuffix(plain, ".") && !strings.HasSuffix(strings.ToLower(plain), ".lock")
	if plain == key && fits {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	plain = strings.TrimRight(plain[:min(len(plain), 40)], ".-")
	return strings.TrimPrefix(plain+"-"+hex.EncodeToString(sum[:10]), "-")
}
