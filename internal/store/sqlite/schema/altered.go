package schema

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// defensive is what every connection is opened with. No function or table of a
// program is at the call of what stands in a schema, and no statement writes to
// what SQLite keeps for itself. https://sqlite.org/security.html
const Defensive = "_defensive=1&_pragma=trusted_schema(0)"

// An Object is a table, an index, a view or a trigger of a database.
type Object struct {
	Type, Name string
	table, sql string
}

func (o Object) String() string { return fmt.Sprintf("%s %q", o.Type, o.Name) }

// An AlteredError says that the schema of a database is not what this program
// makes: it could do what nobody has asked for.
type AlteredError struct {
	Strange []Object // that are not ours, or differ from ours
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
		const most = 5
		var names []string
		for _, o := range list.objects[:min(most, len(list.objects))] {
			names = append(names, o.String())
		}
		if more := len(list.objects) - most; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		parts = append(parts, list.what+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}

// querier is a *sql.DB or a *sql.Conn.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// checkSchema compares the schema of a database with what the migrations make,
// object by object, and gives an *AlteredError where they differ. It asks for
// nothing but the schema.
func Check(ctx context.Context, db Querier, version int) error {
	found, err := objects(ctx, db)
	if err != nil {
		return err
	}
	if version < 0 || version >= len(schemas) {
		return fmt.Errorf("its format is %d, this program knows up to %d", version, len(migrations))
	}
	wanted, err := schemas[version]()
	if err != nil {
		return err
	}
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

// mostObjects is more than any version has, and what is read of a schema at
// most.
const mostObjects = 1000

func objects(ctx context.Context, db Querier) ([]Object, error) {
	rows, err := db.QueryContext(ctx, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT ?", mostObjects)
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

// normal gives the SQL of objects a single space between words. ALTER TABLE keeps the white
// space of the statements that it changes.
func normal(list []Object) []Object {
	for i := range list {
		list[i].sql = strings.Join(strings.Fields(list[i].sql), " ")
	}
	return list
}

// schemas returns the objects of each format, made once since an opening asks several
// times. The latest format is read from latest.sql. Earlier ones, which are rare, are made
// by the migrations, in memory, which takes some milliseconds.
var schemas = func() (list []func() ([]Object, error)) {
	for version := range len(migrations) {
		list = append(list, sync.OnceValues(func() ([]Object, error) {
			objects, err := migrated(version)
			return normal(objects), err
		}))
	}
	return append(list, sync.OnceValues(func() ([]Object, error) { return normal(parse(latest)), nil }))
}()

// migrated returns the objects that the migrations up to a format make.
func migrated(version int) ([]Object, error) {
	if version == 0 {
		return nil, nil
	}
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file::memory:?"+Defensive)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx) // each would be a database of its own
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for _, migration := range migrations[:version] {
		if _, err := conn.ExecContext(ctx, migration); err != nil {
			return nil, err
		}
	}
	return objects(ctx, conn)
}
