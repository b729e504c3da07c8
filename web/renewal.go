package web

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"runtime/debug"
	"slices"
)

// drawnBy names what draws pages: this program's version and its embedded files. A page says
// it to its stream, so that one that was open while the server was upgraded is drawn anew: its
// script, its style and what it expects to be sent belong to the program before.
var drawnBy = nameOfBuild(assets)

func nameOfBuild(t assetTable) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(t.byPath)) { // each with the hash of its content
		sum.Write([]byte(name + "\n"))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		sum.Write([]byte(info.Main.Version))
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				sum.Write([]byte(s.Value))
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:5])
}

// drawnByParam is the parameter of a stream that says by what its page was drawn. A page that
// doesn't say it is taken as it is.
const drawnByParam = "by"

// outdated reports whether another program than this one drew the page of the stream.
func (v *visit) outdated() bool {
	by := v.r.URL.Query().Get(drawnByParam)
	return by != "" && by != drawnBy
}
