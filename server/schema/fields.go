package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A field is a field of a struct, or one of a struct embedded in it, that
// encoding/json reads and writes as a member of one object.
type field struct {
	name       string
	index      []int // index for reflect.Type.FieldByIndex
	typ        reflect.Type
	doc        string // the tag doc:"…"
	tagged     bool   // the name comes from a tag
	maybeEmpty bool   // omitempty or omitzero
	quoted     bool   // the option string: a value in a JSON string
	viaPointer bool   // in an embedded struct that may be nil
}

// fieldsOf lists a struct's fields in their order, as encoding/json has them. Of several with
// the same name, the least deeply embedded one counts, then the only one with a tag, else none.
func fieldsOf(t reflect.Type) []field {
	var all []field
	collectFields(t, field{}, map[reflect.Type]bool{t: true}, &all)
	byName := make(map[string][]field, len(all))
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var fields []field
	for _, same := range byName {
		if f, ok := dominant(same); ok {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return fields
}

// collectFields adds the fields of a struct that is embedded as parent says.
func collectFields(t reflect.Type, parent field, within map[reflect.Type]bool, all *[]field) {
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{
			name: sf.Name, typ: sf.Type, doc: sf.Tag.Get("doc"),
			index: append(slices.Clone(parent.index), i), viaPointer: parent.viaPointer,
		}
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if isMemberName(name) {
			f.name, f.tagged = name, true
		}
		base := sf.Type
		if base.Name() == "" && base.Kind() == reflect.Pointer {
			base = base.Elem()
		}
		isStruct := base.Kind() == reflect.Struct
		if !sf.IsExported() && !(sf.Anonymous && isStruct) {
			continue
		}
		if sf.Anonymous && isStruct && !f.tagged {
			if !within[base] { // else it embeds itself
				within[base] = true
				f.viaPointer = f.viaPointer || base != sf.Type
				collectFields(base, f, within, all)
				delete(within, base)
			}
			continue
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty", "omitzero":
				f.maybeEmpty = true
			case "string":
				f.quoted = isQuotable(base)
			}
		}
		*all = append(*all, f)
	}
}

// dominant returns the effective field among those with one name, if there is one.
func dominant(same []field) (f field, ok bool) {
	slices.SortStableFunc(same, func(a, b field) int {
		switch {
		case len(a.index) != len(b.index):
			return cmp.Compare(len(a.index), len(b.index))
		case a.tagged == b.tagged:
			return 0
		case a.tagged:
			return -1
		}
		return 1
	})
	f = same[0]
	return f, len(same) == 1 || len(same[1].index) != len(f.index) || same[1].tagged != f.tagged
}

// isMemberName reports whether encoding/json accepts a name from a tag.
func isMemberName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return name != ""
}

// isQuotable reports whether encoding/json applies the option string to a type.
func isQuotable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}
