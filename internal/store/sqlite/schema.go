package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// format is the number of the schema, which SQLite stores in user_version. A change of schema.sql
// raises it, and upgrades says how a database gets from the one before to it. Databases below
// oldest are refused: they are older than the first release.
const (
	oldest = 100
	format = 103
	words  = 103 // since then, tables say session and turn: see upgrade-103.sql
)

// upgrades are the statements that bring a database to a format from the one before, in order.
var upgrades = []struct {
	format     int
	statements string
}{
	{101, "ALTER TABLE changes ADD COLUMN old_mode INTEGER NOT NULL DEFAULT 0; ALTER TABLE changes ADD COLUMN new_mode INTEGER NOT NULL " +
		"DEFAULT 0;"},
	{102, "ALTER TABLE runs ADD COLUMN clock_off INTEGER NOT NULL DEFAULT 0;"},
	{words, upgradeWords},
}

//go:embed upgrade-103.sql
var upgradeWords string

// schemaBefore is schema.sql of the last format before words.
//
//go:embed schema-102.sql
var schemaBefore string

// addedBefore are the columns that formats before words have added, to the tables of schemaBefore.
var addedBefore = []struct {
	format        int
	table, column string
}{
	{101, "changes", "old_mode INTEGER NOT NULL DEFAULT 0"},
	{101, "changes", "new_mode INTEGER NOT NULL DEFAULT 0"},
	{102, "runs", "clock_off INTEGER NOT NULL DEFAULT 0"},
}

// schema is the SQL of a new database. Each database is compared with it before use. Each object
// has a heading, "-- TYPE NAME TABLE", and its SQL. SQLite itself creates the objects with the
// word "implicit", together with another object; TestSchema checks the headings.
//
//go:embed schema.sql
var schema string

const (
	heading  = "-- "
	implicit = "implicit "
)

// createSchema makes the tables of an empty database, all or none. conn must be the only writing
// connection.
func createSchema(ctx context.Context, conn *sql.Conn) error {
	var statements strings.Builder
	for part := range strings.SplitSeq("\n"+schema, "\n"+heading) {
		if !strings.HasPrefix(part, implicit) {
			_, statement, _ := strings.Cut(part, "\n")
			statements.WriteString(statement)
		}
	}
	_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE;"+statements.String()+fmt.Sprintf("PRAGMA user_version = %d; COMMIT;", format))
	if err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
		return fmt.Errorf("making the tables: %w", err)
	}
	return nil
}

// upgradeSchema brings a database of an older format to format, all or nothing. conn must be the
// only writing connection.
func upgradeSchema(ctx context.Context, conn *sql.Conn, version int) error {
	_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	for _, u := range upgrades {
		if err == nil && u.format > version {
			_, err = conn.ExecContext(ctx, u.statements)
		}
	}
	if err == nil {
		err = remakeIndexes(ctx, conn)
	}
	if err == nil {
		err = checkSchema(ctx, conn, format)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; COMMIT", format))
	}
	if err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
		return fmt.Errorf("upgrading the tables: %w", err)
	}
	return nil
}

// remakeIndexes drops the indexes that schema.sql does not have, and makes those that are missing:
// SQLite cannot rename an index.
func remakeIndexes(ctx context.Context, conn *sql.Conn) error {
	found, err := objects(ctx, conn)
	if err != nil {
		return err
	}
	found = normal(found)
	for _, o := range found {
		if o.Type == "index" && o.sql != "" && !slices.Contains(schemaObjects(), o) {
			if _, err := conn.ExecContext(ctx, "DROP INDEX "+o.Name); err != nil {
				return err
			}
		}
	}
	for _, o := range schemaObjects() {
		if o.Type == "index" && o.sql != "" && !slices.Contains(found, o) {
			if _, err := conn.ExecContext(ctx, o.sql); err != nil {
				return err
			}
		}
	}
	return nil
}

// schemaObjects returns the objects of schema.sql. It parses them once, since an opening needs
// them several times.
var schemaObjects = sync.OnceValue(func() []Object { return normal(parseSchema(schema)) })

// objectsOf returns the objects of a database of a format.
func objectsOf(version int) []Object {
	switch {
	case version == 0:
		return nil
	case version >= words:
		return schemaObjects()
	}
	list := normal(parseSchema(schemaBefore))
	for _, n := range addedBefore {
		for i := range list {
			if n.format > version && list[i].Type == "table" && list[i].Name == n.table {
				list[i].sql = strings.Replace(list[i].sql, ", "+n.column, "", 1)
			}
		}
	}
	return list
}

// parseSchema returns the objects of a text in the form of schema.sql.
func parseSchema(text string) (list []Object) {
	for part := range strings.SplitSeq("\n"+text, "\n"+heading) {
		head, statement, _ := strings.Cut(part, "\n")
		words := strings.Fields(strings.TrimPrefix(head, implicit))
		if len(words) != 3 {
			continue // a comment
		}
		list = append(list, Object{words[0], words[1], words[2], strings.TrimSuffix(strings.TrimSpace(statement), ";")})
	}
	return list
}

// defensive are the settings of every connection: a schema cannot call functions or virtual
// tables of a program, and no statement writes to SQLite's own tables.
// https://sqlite.org/security.html
const defensive = "_defensive=1&_pragma=trusted_schema(0)"

// An Object is a table, an index, a view or a trigger of a database.
type Object struct {
	Type, Name string
	table, sql string
}

func (o Object) String() string { return fmt.Sprintf("%s %q", o.Type, o.Name) }

// An AlteredError reports that the schema of a database differs from this program's. Such a
// schema could run foreign statements.
type AlteredError struct {
	Strange []Object // foreign, or different from this program's
	Missing []Object
}

func (e *AlteredError) Error() string {
	var parts []string
	for _, list := range []struct {
		what    string
		objects []Object
	}{{"not made by duet-rpc: ", e.Strange}, {"missing: ", e.Missing}} {
		if len(list.objects) == 0 {
			continue
		}
		const maxNamed = 5
		var names []string
		for _, o := range list.objects[:min(maxNamed, len(list.objects))] {
			names = append(names, o.String())
		}
		if more := len(list.objects) - maxNamed; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		parts = append(parts, list.what+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// checkSchema compares the schema of a database of a format with schema.sql, object by object,
// and returns an *AlteredError if they differ. A database of format 0 is empty. It reads only the
// schema.
func checkSchema(ctx context.Context, db querier, version int) error {
	found, err := objects(ctx, db)
	if err != nil {
		return err
	}
	wanted := objectsOf(version)
	var differs AlteredError
	for _, o := range normal(found) {
		if !slices.Contains(wanted, o) {
			differs.Strange = append(differs.Strange, o)
		}
	}
	for _, o := range wanted {
		if !slices.ContainsFunc(found, func(f Object) bool { return f.Type == o.Type && f.Name == o.Name }) {
			differs.Missing = append(differs.Missing, o)
		}
	}
	if len(differs.Strange) == 0 && len(differs.Missing) == 0 {
		return nil
	}
	return &differs
}

// maxObjects limits how much of a schema is read.
const maxObjects = 1000

func objects(ctx context.Context, db querier) ([]Object, error) {
	rows, err := db.QueryContext(ctx, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT ?", maxObjects)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Object
	for rows.Next() {
		var o Object
		if err := rows.Scan(&o.Type, &o.Name, &o.table, &o.sql); err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, rows.Err()
}

// normal reduces white space in the SQL of objects to single spaces, and to none before a comma or
// parenthesis: SQLite adds a column without those of schema.sql. It drops the quotes that SQLite
// puts around the new name of a table.
func normal(list []Object) []Object {
	for i := range list {
		text := strings.NewReplacer(" ,", ",", " )", ")").Replace(strings.Join(strings.Fields(list[i].sql), " "))
		list[i].sql = renamed.Replace(text)
	}
	return list
}

// renamed has the tables that upgrade-103.sql renames, and their former names.
var renamed = strings.NewReplacer(`"sessions"`, "sessions", `"turns"`, "turns", `"gate_turns"`, "gate_turns",
	`"threads"`, "threads", `"runs"`, "runs", `"gate_runs"`, "gate_runs")
