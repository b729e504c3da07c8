package git

import "regexp"

// quoting are the messages in which git repeats a line of a file that it could not read as what it
// should be. Where somebody put a link in that file's place, it is a line of any file that the
// worker's owner can read, perhaps of a secret one; and what git says reaches people, and agents.
var quoting = regexp.MustCompile(`(?m)(` +
	`(?:unexpected|unterminated) line in .*?:|` + // packed-refs
	`(?:bad|invalid) (?:un)?shallow line:|` +
	`(?:bad|duplicate) graft data:|` +
	`unable to normalize alternate object path:|` +
	`bad (?:numeric|boolean) config value` +
	`) .*$|^.*(object directory) .* (does not exist; check .*)$|^.*( is not a valid attribute name.*)$|^.*(: ignoring alternate object stores, nesting too deep)$`)

// unquoted is what git printed without what it quotes of files.
func unquoted(text string) string { return quoting.ReplaceAllString(text, "$1$2 … $3$4$5") }
