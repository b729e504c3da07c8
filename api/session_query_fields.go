package api

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

func commas[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ",")
}

func commaIDs(ids []SessionID) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return strings.Join(out, ",")
}

// once sets what a query may say once.
func once(field *string, value string) error {
	if *field != "" && *field != value {
		return fmt.Errorf("it says %s already; a session has one", *field)
	}
	*field = value
	return nil
}

// readStatuses reads a list of words that stand for statuses. Said twice, both must be true.
func readStatuses(of func(word string) []Status, what string) func(*SessionFilter, queryWord, time.Time) error {
	return func(f *SessionFilter, w queryWord, _ time.Time) error {
		var said []Status
		for word := range strings.SplitSeq(w.value, ",") {
			statuses := of(word)
			if len(statuses) == 0 {
				return fmt.Errorf("%q is not %s", word, what)
			}
			said = append(said, statuses...)
		}
		fits := slices.DeleteFunc(slices.Clone(Statuses), func(s Status) bool {
			return slices.Contains(said, s) == w.not || (len(f.Statuses) > 0 && !slices.Contains(f.Statuses, s))
		})
		if len(fits) == 0 {
			return errors.New("no status is left that fits it and what is said before")
		}
		f.Statuses = fits
		return nil
	}
}

func readTrigger(f *SessionFilter, w queryWord, _ time.Time) error {
	switch t := Trigger(w.value); t {
	case ByUser, ByScheduler, ByWebhook, ByAgent:
		f.Trigger = t
		return nil
	}
	return errors.New("must be one of user, scheduler, webhook, agent")
}

func readWhen(of func(*SessionFilter) *Time) func(*SessionFilter, queryWord, time.Time) error {
	return func(f *SessionFilter, w queryWord, now time.Time) error {
		at, err := ParseTime(w.value, now, true)
		if err != nil {
			return err
		}
		*of(f) = Time{Time: at.UTC()}
		return nil
	}
}

func readIs(f *SessionFilter, w queryWord, _ time.Time) error {
	var names []string
	for _, is := range queryIs {
		if names = append(names, is.name); is.name == w.value {
			*is.of(f) = true
			return nil
		}
	}
	return errors.New("must be one of " + strings.Join(names, ", "))
}

func readIDs(f *SessionFilter, w queryWord, _ time.Time) error {
	for word := range strings.SplitSeq(w.value, ",") {
		var id SessionID
		if err := id.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		f.IDs = append(f.IDs, id)
	}
	return nil
}

// readRange reads >5, >=5, <5, <=5, 5..9 or 5.
func readRange(of func(*SessionFilter) *Range, number func(string) (int64, error)) func(*SessionFilter, queryWord, time.Time) error {
	return func(f *SessionFilter, w queryWord, _ time.Time) error {
		r := Range{Max: math.MaxInt64, Set: true}
		text := w.value
		op := text[:len(text)-len(strings.TrimLeft(text, "<>="))]
		text = text[len(op):]
		first, second, both := strings.Cut(text, "..")
		n, err := number(first)
		if err != nil {
			return err
		}
		switch {
		case both && op == "":
			if r.Min = n; second != "" {
				r.Max, err = number(second)
			}
		case both:
			return errors.New("takes either a comparison or two ends with .. between")
		case op == ">":
			r.Min = n + 1
		case op == ">=":
			r.Min = n
		case op == "<":
			r.Max = n - 1
		case op == "<=":
			r.Max = n
		case op == "" || op == "=":
			r.Min, r.Max = n, n
		default:
			return fmt.Errorf("%s is no comparison: write >, >=, <, <= or two ends with .. between", op)
		}
		if err != nil {
			return err
		}
		*of(f) = of(f).and(r)
		return nil
	}
}

// writeRange writes a range by the shortest comparison: unit is what people count in.
func writeRange(of func(*SessionFilter) Range, unit int64, text func(int64) string) func(*SessionFilter) string {
	return func(f *SessionFilter) string {
		r := of(f)
		switch {
		case !r.Set:
			return ""
		case r.Max == math.MaxInt64 && unit > 1 && r.Min%unit == 1:
			return ">" + text(r.Min-1)
		case r.Max == math.MaxInt64:
			return ">=" + text(r.Min)
		case r.Min == 0 && unit > 1 && r.Max%unit == unit-1:
			return "<" + text(r.Max+1)
		case r.Min == 0:
			return "<=" + text(r.Max)
		}
		return text(r.Min) + ".." + text(r.Max)
	}
}

func wholeNumber(n int64) string { return strconv.FormatInt(n, 10) }

// amount reads a whole number, perhaps in thousands (k) or millions (M).
func amount(text string) (int64, error) {
	times := int64(1)
	for unit, n := range map[string]int64{"k": 1000, "M": 1_000_000} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			text, times = rest, n
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > MaxUsage {
		return 0, fmt.Errorf("%q is no number such as 3, 100k or 2M", text)
	}
	return n * times, nil
}

// dollars reads an amount of money in millionths.
func dollars(text string) (int64, error) {
	n, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(n >= 0 && n <= 1e9) {
		return 0, fmt.Errorf("%q is no amount in US dollars such as 0.5 or 12", text)
	}
	return int64(math.Round(n * 1e6)), nil
}

func dollarsOf(micros int64) string {
	return strconv.FormatFloat(float64(micros)/1e6, 'f', -1, 64)
}

func microsOf(text string) (int64, error) {
	d, err := ParseLength(text)
	return d.Microseconds(), err
}

// lengthOf is a length without the parts of it that are zero.
func lengthOf(micros int64) string {
	text := (time.Duration(micros) * time.Microsecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
