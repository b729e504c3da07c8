package workertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// Loud is a program that speaks the protocol of one of the agent programs, claude or codex,
// and prints a number of bytes in one turn before it ends it: texts, tool results longer and
// shorter than an item, and progress of a running tool. It returns a file to execute.
func Loud(t testing.TB, program string, size int) string {
	t.Helper()
	return Executable(t, Agent(t, "loud-"+program, fmt.Sprint(size)))
}

// Executable is a file that starts a command, adding its own arguments.
func Executable(t testing.TB, argv []string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "program")
	if err != nil {
		t.Fatal(err)
	}
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	_, err = fmt.Fprintf(f, "#!/bin/sh\nexec %s \"$@\"\n", strings.Join(quoted, " "))
	if err := errors.Join(err, f.Chmod(0o700), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

type object = map[string]any

// loud is the program's side of a conversation.
type loud struct {
	in   *bufio.Reader
	out  *bufio.Writer
	left int // bytes to print before the turn ends
}

func newLoud(args []string) *loud {
	return &loud{in: bufio.NewReader(os.Stdin), out: bufio.NewWriterSize(os.Stdout, 64<<10), left: number(args, 0)}
}

// hear returns the next message; the process ends with its input.
func (l *loud) hear() object {
	line, err := l.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		os.Exit(0)
	}
	var m object
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(94)
	}
	return m
}

func (l *loud) say(messages ...object) {
	for _, m := range messages {
		line, err := json.Marshal(m)
		if err == nil {
			l.left -= len(line) + 1
			_, err = l.out.Write(append(line, '\n'))
		}
		if err != nil {
			os.Exit(96)
		}
	}
}

// hearNext sends what is waiting, and reads the next message.
func (l *loud) hearNext() object {
	if l.out.Flush() != nil {
		os.Exit(96)
	}
	return l.hear()
}

// lines are n bytes of text in lines that differ.
func lines(n, i int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%09d.%04d %s\n", i, b.Len()/100, strings.Repeat("x", 84))
	}
	return b.String()
}

// The texts of a round, in bytes: some shorter than an item, some much longer.
const shortText, longText, hugeText = 4 << 10, 60 << 10, 1 << 20

func loudClaude(args []string) {
	l := newLoud(args)
	for {
		switch m := l.hearNext(); m["type"] {
		case "control_request":
			l.say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": m["request_id"], "response": object{}}})
		case "user":
			l.say(object{"type": "system", "subtype": "init", "session_id": "loud"})
			for i := 0; l.left > 0; i++ {
				l.claudeRound(i)
			}
			l.say(object{"type": "result", "subtype": "success", "is_error": false, "result": "quiet again", "num_turns": 1, "stop_reason": "end_turn", "terminal_reason": "completed"})
		}
	}
}

func (l *loud) claudeRound(i int) {
	message := func(part string, blocks ...any) object {
		return object{"type": "assistant", "message": object{"id": fmt.Sprint(part, i), "content": blocks, "usage": object{"input_tokens": 1, "output_tokens": 1}}}
	}
	l.say(message("text", object{"type": "text", "text": lines(shortText, i)}))
	for part, size := range map[string]int{"long": longText, "huge": hugeText} {
		id := fmt.Sprint(part, i)
		l.say(message(part, object{"type": "tool_use", "id": id, "name": "Bash", "input": object{"command": "print"}}))
		for range 100 {
			l.say(object{"type": "stream_event", "event": object{"type": "content_block_delta", "delta": object{"type": "text_delta", "text": lines(100, i)}}})
		}
		l.say(object{"type": "user", "message": object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": lines(size, i)}}}})
	}
}

func loudCodex(args []string) {
	l := newLoud(args)
	for {
		m := l.hearNext()
		answer := func(result object) { l.say(object{"id": m["id"], "result": result}) }
		switch m["method"] {
		case "initialize":
			answer(object{"userAgent": "loud"})
		case "thread/start", "thread/resume":
			answer(object{"thread": object{"id": "loud"}})
		case "turn/start":
			answer(object{"turn": object{"id": "turn", "status": "inProgress"}})
			for i := 0; l.left > 0; i++ {
				l.codexRound(i)
			}
			l.tell("turn/completed", object{"turn": object{"id": "turn", "status": "completed"}})
		}
	}
}

func (l *loud) tell(method string, params object) {
	params["threadId"] = "loud"
	l.say(object{"method": method, "params": params})
}

func (l *loud) codexRound(i int) {
	l.tell("item/completed", object{"item": object{"type": "agentMessage", "id": fmt.Sprint("text", i), "text": lines(shortText, i)}})
	for part, size := range map[string]int{"long": longText, "huge": hugeText} {
		item := func() object {
			return object{"type": "commandExecution", "id": fmt.Sprint(part, i), "command": "print", "status": "inProgress", "cwd": "/"}
		}
		l.tell("item/started", object{"item": item()})
		for range 100 {
			l.tell("item/commandExecution/outputDelta", object{"itemId": fmt.Sprint(part, i), "delta": lines(100, i)})
		}
		done := item()
		done["status"], done["exitCode"], done["aggregatedOutput"] = "completed", 0, lines(size, i)
		l.tell("item/completed", object{"item": done})
	}
	l.tell("thread/tokenUsage/updated", object{"tokenUsage": object{"total": object{"inputTokens": i + 1, "outputTokens": i + 1}}})
}
