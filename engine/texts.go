package engine

import (
	"fmt"
	"math"
	"strings"

	"stint/api"
)

// mended puts U+FFFD into a program's texts for what no text may hold: invalid bytes and NUL.
// A worker must not lose its report because of a byte that something printed. contract 6.2
func mended(texts ...*string) {
	for _, t := range texts {
		*t = strings.ReplaceAll(strings.ToValidUTF8(*t, "\uFFFD"), "\x00", "\uFFFD")
	}
}

func checkLabels(v *api.Invalid, labels *api.Labels) {
	*labels = labels.Normal()
	for _, l := range *labels {
		if !labelForm.MatchString(l) {
			v.Add("labels", fmt.Sprintf("%q is no label: use lowercase letters, digits and . _ / -, at most 63", l))
		}
	}
	if len(*labels) > 20 {
		v.Add("labels", "has more than 20 labels")
	}
}

// sizeWords puts a number of bytes into words.
func sizeWords(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", int64(math.Ceil(float64(n)/(1<<10))))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
