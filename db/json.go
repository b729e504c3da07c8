package db

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"stint/api"
)

// AppendJSON appends a value as encoding/json writes it, byte for byte. What events and hashes
// are made of, it writes without reflection, which costs more than the rest of an event.
func AppendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case string:
		return appendText(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case api.EventData:
		return appendData(b, v)
	case json.Marshaler:
		return appendAny(b, v)
	case encoding.TextMarshaler:
		if reflect.ValueOf(v).Kind() == reflect.Pointer {
			return appendAny(b, v)
		}
		text, err := v.MarshalText()
		if err != nil {
			return nil, err
		}
		return appendText(b, string(text))
	}
	if v := reflect.ValueOf(v); v.Kind() == reflect.String {
		return appendText(b, v.String())
	}
	return appendAny(b, v)
}

func appendAny(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(b, text...), err
}

func appendText(b []byte, text string) ([]byte, error) {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return appendAny(b, text)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"'), nil
}

func appendData(b []byte, data api.EventData) (_ []byte, err error) {
	if data == nil {
		return append(b, "null"...), nil
	}
	names := make([]string, 0, 8)
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendText(b, name); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = AppendJSON(b, data[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
