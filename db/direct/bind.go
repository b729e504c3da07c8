package direct

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"unsafe"
)

func placeOf(query string) place { return place{unsafe.StringData(query), len(query)} }

// bind sets all parameters. There must be as many arguments; the n-th is that of ?n.
func (s *statement) bind(args []any) error {
	if len(args) != s.parameters {
		return fmt.Errorf("the statement has %d parameters and was given %d", s.parameters, len(args))
	}
	for i, arg := range unseen(args) {
		rc, err := s.bindOne(i+1, arg)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		if rc != ok {
			return s.db.lib.failure(rc)
		}
	}
	return nil
}

func (s *statement) bindOne(i int, arg any) (rc int32, err error) {
	l := s.db.lib
	switch v := arg.(type) {
	case int64:
		return l.bindInteger(s.handle, i, v), nil
	case string:
		return s.bindText(i, v), nil
	case []byte:
		return s.bindBlob(i, v), nil
	case *int64: // what a caller passes many of, without copying each
		return l.bindInteger(s.handle, i, *v), nil
	case *string:
		return s.bindText(i, *v), nil
	case nil:
		return l.bindNull(s.handle, i), nil
	case driver.Valuer:
		value, err := v.Value()
		if err != nil {
			return 0, err
		}
		if _, again := value.(driver.Valuer); again {
			return 0, fmt.Errorf("the value of a %T is a %T", arg, value)
		}
		return s.bindOne(i, value)
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return l.bindInteger(s.handle, i, v.Int()), nil
	case reflect.String:
		return s.bindText(i, v.String()), nil
	case reflect.Bool:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		return l.bindInteger(s.handle, i, n), nil
	case reflect.Float32, reflect.Float64:
		return l.bindFloat(s.handle, i, v.Float()), nil
	default:
		return 0, fmt.Errorf("a %T can't be stored", arg)
	}
}

func (s *statement) bindText(i int, v string) int32 {
	p := s.put(len(v))
	if p == 0 {
		return noMemory
	}
	copy(memory(p, len(v)), v)
	return s.db.lib.bindText(s.handle, i, p, len(v))
}

// bindBlob stores nil as NULL, as the driver does.
func (s *statement) bindBlob(i int, v []byte) int32 {
	if v == nil {
		return s.db.lib.bindNull(s.handle, i)
	}
	p := s.put(len(v))
	if p == 0 {
		return noMemory
	}
	copy(memory(p, len(v)), v)
	return s.db.lib.bindBlob(s.handle, i, p, len(v))
}

// texts is the memory that holds a statement's texts and blobs while it runs. It is kept from
// one time to the next, because allocating it costs a lock of the whole process.
type texts struct {
	p    uintptr
	size int
	used int
	more []uintptr // what didn't fit
	need int       // all of the current time
}

const (
	firstTexts = 256
	maxTexts   = 16 << 10 // what a statement keeps at most
)

// put returns memory for n bytes that holds until the statement ends; 0 = there is none.
func (s *statement) put(n int) uintptr {
	t := &s.texts
	n = max(n, 1) // an empty text is none that is missing
	if t.p == 0 {
		size := min(max(firstTexts, t.need*2), maxTexts)
		if t.p = s.db.lib.allocate(size); t.p == 0 {
			return 0
		}
		t.size, t.used, t.need = size, 0, 0
	}
	t.need += n
	if t.used+n <= t.size {
		t.used += n
		return t.p + uintptr(t.used-n)
	}
	p := s.db.lib.allocate(n)
	if p != 0 {
		t.more = append(t.more, p)
	}
	return p
}

// tidyTexts makes the memory free for the next time. What lies in it stays bound: nothing reads
// it before it is bound anew, and unbinding would let SQLite plan the statement again.
func (s *statement) tidyTexts() {
	t := &s.texts
	t.used = 0
	if len(t.more) == 0 {
		t.need = 0
		return
	}
	s.db.lib.unbind(s.handle)
	need := t.need
	s.forgetTexts()
	t.need = need // the next time it has so much at once
}

// forgetTexts frees the memory. The statement must be unbound, or be finalized.
func (s *statement) forgetTexts() {
	for _, p := range append(s.texts.more, s.texts.p) {
		if p != 0 {
			s.db.lib.free(p)
		}
	}
	s.texts = texts{}
}
