package scheduler

import (
	"fmt"
	"strconv"
	"strings"
)

// The cron parser accepts much that is surely a mistake (1,,2 and */90 and *-5), doesn't know
// 7 for Sunday, and explains itself badly. So each field is checked here first, against one
// table, and handed on only in a form on which all readers of cron agree.

// cronField is one of the five fields of an expression.
type cronField struct {
	name     string
	min, max int      // the valid values
	also     int      // one more value that may be written, or 0
	names    []string // names[i] stands for min+i
}

// sunday is the second number for Sunday, so that 5-7 can be written.
const sunday = 7

var cronFields = [...]cronField{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", min: 0, max: 6, also: sunday, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// item is one item of a field's list: every step-th value from low to high.
type item struct {
	low, high, step int
	star            bool // written as *
}

// plain writes items for the cron parser, only in numbers and with 0 for 7.
func (f cronField) plain(items []item) string {
	var parts []string
	for _, i := range items {
		switch {
		case i.star && i.step == 1:
			parts = append(parts, "*")
		case i.star:
			parts = append(parts, fmt.Sprintf("*/%d", i.step))
		default:
			if i.low <= f.max {
				parts = append(parts, fmt.Sprintf("%d-%d/%d", i.low, min(i.high, f.max), i.step))
			}
			if i.high > f.max && (i.high-i.low)%i.step == 0 {
				parts = append(parts, strconv.Itoa(f.min))
			}
		}
	}
	return strings.Join(parts, ",")
}

// parse reads a field, or refuses it.
func (f cronField) parse(text string) (items []item, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return nil, refuse("The %s %s has an empty place in its list: take out the extra comma.", f.name, quote(text))
		}
		i, err := f.parseItem(part)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, nil
}

// parseItem reads *, a value or a range, perhaps with a step. A single value
// with a step runs to the end of the field.
func (f cronField) parseItem(text string) (item, error) {
	base, stepText, stepped := strings.Cut(text, "/")
	from, to, isRange := strings.Cut(base, "-")
	i := item{low: f.min, high: f.max, step: 1, star: base == "*"}
	var err error
	switch {
	case i.star:
	case isRange:
		i.low, i.high, err = f.parseRange(from, to, base)
	default:
		if i.low, err = f.value(from, base); err == nil && (!stepped || i.low > i.high) {
			i.high = i.low
		}
	}
	if err != nil {
		return item{}, err
	}
	if stepped {
		i.step, err = f.step(stepText, text, i.high-i.low)
	}
	return i, err
}

func (f cronField) parseRange(from, to, base string) (low, high int, err error) {
	if low, err = f.value(from, base); err != nil {
		return 0, 0, err
	}
	if high, err = f.value(to, base); err != nil {
		return 0, 0, err
	}
	if f.also == sunday && low > 0 && strings.EqualFold(to, "sun") {
		high = sunday // sat-sun
	}
	if low > high {
		return 0, 0, refuse("The %s range %s runs backwards: write the smaller value first, or a list of two ranges.", f.name, quote(base))
	}
	return low, high, nil
}

// step reads a step over a range of the given width, which it may not exceed:
// */90 in minutes would silently mean "hourly".
func (f cronField) step(text, part string, width int) (int, error) {
	step, ok := number(text)
	switch {
	case !ok:
		return 0, refuse("The step in the %s %s is not a whole number from 1 to %d: write for example */%d.", f.name, quote(part), f.max-f.min, min(5, f.max-f.min))
	case step == 0:
		return 0, refuse("The step in the %s %s is 0 and must be from 1 to %d: leave it out or write a larger one.", f.name, quote(part), max(width, 1))
	case step > 1 && step > width:
		return 0, refuse("The step in the %s %s goes beyond its range and must be from 1 to %d: write a smaller step, or the one value that is meant.", f.name, quote(part), max(width, 1))
	}
	return step, nil
}

// value reads one value, as a number or a name.
func (f cronField) value(text, base string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, ok := number(text)
	switch {
	case ok && n >= f.min && n <= max(f.max, f.also):
		return n, nil
	case ok:
		return 0, refuse("The %s %d is out of range: write %s.", f.name, n, f.allowed())
	case text == "" || text == "*":
		return 0, refuse("The %s %s is not a range: write * alone, or two values such as %d-%d.", f.name, quote(base), f.min, f.max)
	case strings.ContainsAny(text, "?#") || strings.HasSuffix(strings.ToUpper(text), "L") || strings.HasSuffix(strings.ToUpper(text), "W"):
		return 0, refuse("The %s %s is of another cron dialect: write %s.", f.name, quote(text), f.allowed())
	}
	return 0, refuse("The %s %s is not a value: write %s.", f.name, quote(text), f.allowed())
}

// allowed says which values a field takes.
func (f cronField) allowed() string {
	words := fmt.Sprintf("%d to %d", f.min, max(f.max, f.also))
	if f.names != nil {
		words += fmt.Sprintf(" or a name from %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	return words + ", or * for all"
}

// number reads a plain run of digits: no sign, no more than nine.
func number(text string) (n int, ok bool) {
	if text == "" || len(text) > 9 {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// quote shows a piece of what somebody wrote, shortened if it is long.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strconv.Quote(text)
}
