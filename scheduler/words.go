package scheduler

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	describer "github.com/lnquy/cron"
)

// describe is the library that puts cron into English, on the 24-hour clock.
var describe = sync.OnceValues(func() (*describer.ExpressionDescriptor, error) {
	return describer.NewDescriptor(describer.Use24HourTimeFormat(true))
})

// Words says in one English sentence when the schedule is due, and in which
// zone: "At 09:00, Monday through Friday (Europe/Berlin)".
func (s Schedule) Words() string {
	return fmt.Sprintf("%s (%s)", s.sentence(), s.Zone())
}

func (s Schedule) sentence() string {
	if s.text == "" {
		return "Never"
	}
	if s.every > 0 {
		return everyInWords(s.every) + " from when it was set"
	}
	items, err := parseFields(strings.Fields(s.text))
	if err != nil { // can't happen: Parse has read the same text
		return "On " + s.text
	}
	words, err := s.cron.inWords(items)
	if err != nil {
		return "On " + s.text
	}
	return words
}

// everyInWords puts a distance into its largest whole unit.
func everyInWords(seconds int64) string {
	n, unit := seconds/60, "minute"
	switch {
	case seconds%(24*60*60) == 0:
		n, unit = seconds/(24*60*60), "day"
	case seconds%(60*60) == 0:
		n, unit = seconds/(60*60), "hour"
	}
	if n == 1 {
		return "Every " + unit
	}
	return fmt.Sprintf("Every %d %ss", n, unit)
}

// inWords describes the fields. The library says "and" where the two fields of
// days mean "or", so with both restricted they are described one at a time.
func (p pattern) inWords(items [len(cronFields)][]item) (string, error) {
	minute, hour := p.fieldWords(items, 0), p.fieldWords(items, 1)
	dom, month, dow := p.fieldWords(items, 2), p.fieldWords(items, 3), p.fieldWords(items, 4)
	if p.eitherDay && (dom == "*" || dow == "*") { // written out in full: every day
		dom, dow = "*", "*"
	}
	if !p.eitherDay || dom == "*" {
		return library(minute, hour, dom, month, dow)
	}

	clock, err := library(minute, hour, "*", "*", "*")
	if err != nil {
		return "", err
	}
	var tails [3]string
	for i, days := range [][3]string{{dom, "*", "*"}, {"*", "*", dow}, {"*", month, "*"}} {
		whole, err := library(minute, hour, days[0], days[1], days[2])
		if err != nil {
			return "", err
		}
		tails[i] = strings.TrimPrefix(whole, clock)
	}
	weekdays := strings.TrimPrefix(strings.TrimPrefix(tails[1], ", "), "only ")
	return clock + tails[0] + " or " + weekdays + tails[2], nil
}

// library asks the library for one description and corrects its grammar. It reads only what
// fieldWords wrote, and even so is not trusted.
func library(fields ...string) (words string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("describe %v: %v", fields, r)
		}
	}()
	d, err := describe()
	if err != nil {
		return "", fmt.Errorf("load the words of schedules: %w", err)
	}
	words, err = d.ToDescription(strings.Join(fields, " "), describer.Locale_en)
	if err != nil {
		return "", fmt.Errorf("describe %v: %w", fields, err)
	}
	words = strings.Replace(words, "At 0 minutes past the hour, every ", "Every ", 1)
	words = strings.Replace(words, "At 1 minutes ", "At 1 minute ", 1)
	return words, nil
}

// fieldWords writes a field so that the library reads it correctly: numbers only, one step or
// one range or a list, never a mixture with steps.
func (p pattern) fieldWords(items [len(cronFields)][]item, field int) string {
	f, set := cronFields[field], p.bits(field)
	if f.also == sunday && set&1 == 1 { // in words the week ends on Sunday
		set = set&^1 | 1<<sunday
	}
	low, high := bits.TrailingZeros64(set), bits.Len64(set)-1
	switch n := bits.OnesCount64(set); {
	case n == f.max-f.min+1:
		return "*"
	case n == 1:
		return strconv.Itoa(low)
	case n > 2 && n == high-low+1:
		return fmt.Sprintf("%d-%d", low, high)
	}
	if one := items[field][0]; len(items[field]) == 1 && one.step > 1 && f.also == 0 {
		switch {
		case one.star:
			return fmt.Sprintf("*/%d", one.step)
		case one.high == f.max:
			return fmt.Sprintf("%d/%d", one.low, one.step)
		}
		return fmt.Sprintf("%d-%d/%d", one.low, one.high, one.step)
	}
	// Several hours at one minute are best given as times of day.
	timesOfDay := field == 1 && bits.OnesCount64(p.minute) == 1
	return list(set, !timesOfDay)
}

// bits is the set of values of a field, by its place in the expression.
func (p pattern) bits(field int) uint64 {
	return [len(cronFields)]uint64{p.minute, p.hour, p.dom, p.month, p.dow}[field]
}

// list writes a set as a list, runs of three or more as ranges if wanted.
func list(set uint64, ranges bool) string {
	var parts []string
	for set != 0 {
		low := bits.TrailingZeros64(set)
		run := bits.TrailingZeros64(^(set >> low))
		if !ranges || run < 3 {
			run = 1
		}
		part := strconv.Itoa(low)
		if run > 1 {
			part += "-" + strconv.Itoa(low+run-1)
		}
		parts = append(parts, part)
		set &^= (1<<run - 1) << low
	}
	return strings.Join(parts, ",")
}
