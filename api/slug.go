package api

import "regexp"

// SlugForm is how a slug is written: 2 to 32 lowercase letters, digits and dashes, beginning
// with a letter. contract 1
var SlugForm = regexp.MustCompile(`^[a-z][a-z0-9-]{1,31}$`)
