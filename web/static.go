package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Font is the typeface of the pages, for those that need no sign-in.
func Font() []byte { return assets.byName["geist.woff2"].body }

// StaticPrefix is the path below which [Static] has to be mounted.
const StaticPrefix = "/static/"

//go:embed static/*.css static/*.js static/*.svg static/*.woff2
var files embed.FS

// assets is the table of embedded files, made once from what is embedded.
var assets = loadAssets(files)

// icons are the names in the sprite.
var icons = iconNames(assets)

type asset struct {
	body []byte
	kind string
	url  string                        // path with the hash of the body in its name
	pack func() (body []byte, ok bool) // compressed, when somebody first asks; ok is false where that is no smaller
}

type assetTable struct {
	byName map[string]asset // by plain name: stint.css
	byPath map[string]asset // by hashed name: stint.1a2b3c4d5e.css
}

var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

// cssURL finds the files that a style sheet names.
var cssURL = regexp.MustCompile(`url\(([\w.-]+)\)`)

// loadAssets hashes every file; style sheets come last, so that the names in them can be
// replaced by hashed ones before they are hashed themselves.
func loadAssets(from fs.FS) assetTable {
	names, err := fs.Glob(from, "static/*")
	if err != nil {
		panic(fmt.Errorf("list embedded files: %w", err))
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(sheetLast(a), sheetLast(b))
	})
	t := assetTable{byName: map[string]asset{}, byPath: map[string]asset{}}
	for _, file := range names {
		body, err := fs.ReadFile(from, file)
		if err != nil {
			panic(fmt.Errorf("read embedded %s: %w", file, err))
		}
		name, ext := path.Base(file), path.Ext(file)
		if ext == ".css" {
			body = cssURL.ReplaceAllFunc(body, func(match []byte) []byte {
				used, ok := t.byName[string(cssURL.FindSubmatch(match)[1])]
				if !ok {
					panic(fmt.Errorf("%s names a file that is not embedded: %s", file, match))
				}
				return fmt.Appendf(nil, "url(%s)", path.Base(used.url))
			})
		}
		sum := sha256.Sum256(body)
		hashed := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:5]) + ext
		a := asset{body: body, kind: mediaTypes[ext], url: StaticPrefix + hashed, pack: sync.OnceValues(func() ([]byte, bool) {
			small := packed(body, gzip.BestCompression)
			return small, small != nil && ext != ".woff2" // which is compressed by itself
		})}
		t.byName[name], t.byPath[hashed] = a, a
	}
	return t
}

func sheetLast(name string) string {
	if path.Ext(name) == ".css" {
		return "~" + name
	}
	return name
}

// AssetURL is the address of an embedded file, with the hash of its content in
// its name. An unknown name panics: it is a mistake in a template, and every
// template is drawn by tests.
func AssetURL(name string) string {
	a, ok := assets.byName[name]
	if !ok {
		panic("web: no embedded file " + name)
	}
	return a.url
}

// Static serves the embedded files below [StaticPrefix]. A hashed name never
// changes its content and may be kept for a year; any other is 404. It needs no
// sign-in: the files are the same for everybody.
func Static() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets.byPath[strings.TrimPrefix(r.URL.Path, StaticPrefix)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Vary", "Accept-Encoding")
		small, ok := a.pack()
		if !ok || !takesGzip(r) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(small)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(small) // a reader who went away is no failure
		}
	})
}

var symbol = regexp.MustCompile(`<symbol id="([^"]+)"`)

func iconNames(t assetTable) map[string]bool {
	names := map[string]bool{}
	for _, m := range symbol.FindAllSubmatch(t.byName["icons.svg"].body, -1) {
		names[string(m[1])] = true
	}
	return names
}

// iconURL is the address of one icon. Like [AssetURL] it panics on a name that
// doesn't exist.
func iconURL(name string) string {
	if !icons[name] {
		panic("web: no icon " + name + " in the sprite")
	}
	return AssetURL("icons.svg") + "#" + name
}
