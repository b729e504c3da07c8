package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line that is too long has its long texts cut and is read as usual; the next one is whole.
func TestReadLine_LongTextsAreCut(t *testing.T) {
	for name, unit := range map[string]string{
		"letters": "x", "two bytes": "é", "escapes": `\n`, "quotes": `\"`, "code points": `é`, "backslashes": `\\`, "pairs": `😀`,
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(unit, (maxLine+longText)/len(unit))
			r := bufio.NewReader(strings.NewReader(fmt.Sprintf(`{"type":"result","noise":"%s","result":"short","n":{"a":[1,"%s"]},"usage":7}`+"\n"+`{"next":true}`+"\n", text, text)))
			l, err := readLine(r)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Type, Noise, Result string
				Usage               int
			}
			if err := json.Unmarshal(l.text, &got); err != nil {
				t.Fatal(err)
			}
			if got.Type != "result" || got.Result != "short" || got.Usage != 7 || l.cut < int64(len(text)) || len(l.text) > 3*longText {
				t.Errorf("%d bytes with %d left out: %s %s %d", len(l.text), l.cut, got.Type, got.Result, got.Usage)
			}
			if !utf8.ValidString(got.Noise) || !strings.HasSuffix(got.Noise, "bytes of this text were left out]") {
				t.Errorf("the text ends %q", got.Noise[max(0, len(got.Noise)-60):])
			}
			if l, err = readLine(r); err != nil || string(l.text) != `{"next":true}` || l.cut != 0 {
				t.Errorf("the next line is %q, %v", l.text, err)
			}
		})
	}
}

// A line of very many texts is cut too, and keeps what comes last: a result's usage and its
// session do.
func TestReadLine_ManyTextsAreCut(t *testing.T) {
	for name, size := range map[string]int{"of 200 kB": 200_000, "of 5 kB": 5_000, "of 1 kB": 1_000} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat("x", size)
			line := `{"type":"result","n":["` + strings.Repeat(text+`","`, 30<<20/size) + `"],"usage":7}` + "\n" + `{"next":true}` + "\n"
			r := bufio.NewReader(strings.NewReader(line))
			l, err := readLine(r)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Type  string
				Usage int
			}
			if err := json.Unmarshal(l.text, &got); err != nil || l.lost {
				t.Fatalf("lost %v: %v", l.lost, err)
			}
			if got.Type != "result" || got.Usage != 7 || len(l.text) > maxLine {
				t.Errorf("%d bytes with %d left out: %+v", len(l.text), l.cut, got)
			}
			if l, err = readLine(r); err != nil || string(l.text) != `{"next":true}` || l.cut != 0 {
				t.Errorf("the next line is %q, %v", l.text, err)
			}
		})
	}
}

// A line that no cut makes short enough is skipped, and what follows is read.
func TestReadLine_WithoutTextsIsLost(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("[" + strings.Repeat(`"a",`, maxLine/3) + "\n" + `{"next":true}` + "\n"))
	if l, err := readLine(r); err != nil || !l.lost || l.text != nil {
		t.Errorf("answered %d bytes, lost %v, %v", len(l.text), l.lost, err)
	}
	if l, err := readLine(r); err != nil || string(l.text) != `{"next":true}` || l.lost {
		t.Errorf("the next line is %q, lost %v, %v", l.text, l.lost, err)
	}
}
