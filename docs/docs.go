// Package docs holds what users read beyond the README, so that the program can
// show it offline and in its own version.
package docs

import "embed"

// Files are the Markdown pages. The first line of each is its title.
//
//go:embed *.md
var Files embed.FS
