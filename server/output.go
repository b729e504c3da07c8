package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"stint/api"
)

// outputPart is how many bytes of text one answer with output holds at most (contract 12.1).
const outputPart = 32 << 10

// outputPlace is where a part of a session's output begins: at a byte of an item's text.
type outputPlace struct {
	seq    int64
	offset int
}

func (p outputPlace) String() string {
	return strconv.FormatInt(p.seq, 10) + "." + strconv.Itoa(p.offset)
}

// placeOf reads a cursor, "" being the beginning.
func (q *query) placeOf(name string) outputPlace {
	text := q.text(name)
	if text == "" {
		return outputPlace{seq: 1}
	}
	seq, offset, _ := strings.Cut(text, ".")
	var p outputPlace
	var err error
	if p.seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
		p.offset, err = strconv.Atoi(offset)
	}
	if err != nil || p.seq < 1 || p.offset < 0 || p.String() != text {
		q.bad.Add(name, "take it unchanged from cursor of the part before, or leave it out")
	}
	return p
}

// output answers a part of a session's output as text. The session is read before its items,
// so that one that has ended has no more of them than are seen.
func (s *Server) output(x *exchange) (response, error) {
	q := x.query()
	at := q.placeOf("cursor")
	if err := q.end(); err != nil {
		return response{}, err
	}
	ctx := x.r.Context()
	if err := s.sessionHere(ctx, x); err != nil {
		return response{}, err
	}
	one, err := s.engine.Session(ctx, x.caller, x.session)
	if err != nil {
		return response{}, err
	}
	text, at, more, err := s.outputFrom(ctx, x, at)
	return reply(api.Output{Text: text, Cursor: at.String(), More: more, Status: one.Status}, err)
}

// outputFrom gathers the text that begins at a place, and returns where the next part does.
func (s *Server) outputFrom(ctx context.Context, x *exchange, at outputPlace) (string, outputPlace, bool, error) {
	var b strings.Builder
	for {
		items, _, err := s.engine.Items(ctx, x.caller, x.session, at.seq-1, itemPage)
		if err != nil || len(items) == 0 {
			return b.String(), at, false, err
		}
		for _, item := range items {
			text := ansi.Strip(item.Transcript())
			begun := 0
			if item.Seq == at.seq {
				begun = min(at.offset, len(text))
			}
			if text = text[begun:]; item.Stream == "" && begun == 0 && text != "" && midLine(b.String()) {
				text = "\n" + text
				begun = -1
			}
			if room := outputPart - b.Len(); len(text) > room {
				n := len(api.CutAt(text, room))
				b.WriteString(text[:n])
				return b.String(), outputPlace{seq: item.Seq, offset: max(begun+n, 0)}, true, nil
			}
			b.WriteString(text)
			at = outputPlace{seq: item.Seq + 1}
		}
	}
}

func midLine(text string) bool { return text != "" && !strings.HasSuffix(text, "\n") }
