package direct

import (
	"database/sql"
	"fmt"
	"reflect"
)

// scan copies the columns of the row that the statement stands on.
func (s *statement) scan(dest []any) error {
	if len(dest) != s.columns {
		return fmt.Errorf("the row has %d columns and is to go into %d", s.columns, len(dest))
	}
	for i, d := range dest {
		if err := s.db.lib.column(s.handle, i).into(d); err != nil {
			return fmt.Errorf("column %d, %s: %w", i, s.db.lib.columnName(s.handle, i), err)
		}
	}
	return nil
}

// into copies a value where d points. A named type is set as what it is, an integer or a text,
// unless it has a method Scan.
func (c column) into(d any) error {
	class := c.class()
	switch d := d.(type) {
	case *int64:
		if class == integer {
			*d = c.integer()
			return nil
		}
	case *string:
		if class == text {
			*d = c.text()
			return nil
		}
	case *[]byte:
		if class == blob {
			*d = c.blob()
			return nil
		}
	case sql.Scanner:
		return d.Scan(c.value())
	}
	v := reflect.ValueOf(d)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("a %T can't be scanned into", d)
	}
	v = v.Elem()
	switch {
	case class == integer && v.CanInt() && !v.OverflowInt(c.integer()):
		v.SetInt(c.integer())
	case class == text && v.Kind() == reflect.String:
		v.SetString(c.text())
	case class == integer && v.Kind() == reflect.Bool:
		v.SetBool(c.integer() != 0)
	case (class == float || class == integer) && v.CanFloat():
		v.SetFloat(c.float())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return c.intoBytes(v)
	case v.Kind() == reflect.Interface && v.NumMethod() == 0:
		if class == null {
			v.SetZero()
		} else {
			v.Set(reflect.ValueOf(c.value()))
		}
	default:
		return fmt.Errorf("a %s is no %s", class, v.Type())
	}
	return nil
}

func (c column) intoBytes(v reflect.Value) error {
	switch c.class() {
	case blob:
		v.SetBytes(c.blob())
	case text:
		v.SetBytes([]byte(c.text()))
	case null:
		v.SetZero()
	default:
		return fmt.Errorf("a %s is no %s", c.class(), v.Type())
	}
	return nil
}

// value is the column as database/sql's drivers give it.
func (c column) value() any {
	switch c.class() {
	case integer:
		return c.integer()
	case float:
		return c.float()
	case text:
		return c.text()
	case blob:
		return c.blob()
	default:
		return nil
	}
}

func (k class) String() string {
	switch k {
	case integer:
		return "integer"
	case float:
		return "real number"
	case text:
		return "text"
	case blob:
		return "blob"
	default:
		return "NULL"
	}
}
