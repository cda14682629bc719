package schema

import (
	_ "embed"
	"slices"
	"strings"
)

// latest.sql is the schema that all migrations together make. A new database is made from
// it and an existing one is compared with it: running the migrations at each start would
// cost more than the rest of the opening. TestLatest writes the file and holds it to them.
//
// Each object has a heading, "-- TYPE NAME TABLE", and its SQL. SQLite makes those with the
// word "implicit" itself, together with another object.
//
//go:embed latest.sql
var latest string

const (
	heading  = "-- "
	implicit = "implicit "
)

// create returns the statements that make the latest schema in an empty database.
func create() string {
	var b strings.Builder
	for part := range strings.SplitSeq(latest, "\n"+heading) {
		if !strings.HasPrefix(part, implicit) {
			_, statement, _ := strings.Cut(part, "\n")
			b.WriteString(statement)
		}
	}
	return b.String()
}

// parse returns the objects of a text in the form of latest.sql.
func parse(text string) (list []Object) {
	for part := range strings.SplitSeq("\n"+text, "\n"+heading) {
		head, statement, _ := strings.Cut(part, "\n")
		words := strings.Fields(strings.TrimPrefix(head, implicit))
		if len(words) != 3 {
			continue // what stands before the first heading
		}
		list = append(list, Object{words[0], words[1], words[2], strings.TrimSuffix(strings.TrimSpace(statement), ";")})
	}
	return list
}

// print returns objects in the form of latest.sql.
func print(list []Object) string {
	var b strings.Builder
	for i, o := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(heading)
		if o.implicit(list) {
			b.WriteString(implicit)
		}
		b.WriteString(o.Type + " " + o.Name + " " + o.table + "\n")
		if o.sql != "" {
			b.WriteString(o.sql + ";\n")
		}
	}
	return b.String()
}

// implicit reports whether SQLite makes the object by itself: the tables behind a virtual
// table, and the indexes of constraints.
func (o Object) implicit(all []Object) bool {
	return strings.HasPrefix(o.Name, "sqlite_") || slices.ContainsFunc(all, func(virtual Object) bool {
		return strings.HasPrefix(virtual.sql, "CREATE VIRTUAL TABLE") && strings.HasPrefix(o.Name, virtual.Name+"_")
	})
}
