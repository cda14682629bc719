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
	for _, o := range found {
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
		o.sql = strings.Join(strings.Fields(o.sql), " ")
		list = append(list, o)
	}
	return list, rows.Err()
}

// schemas are those that the migrations up to each version make. Each is made
// once, in memory, when it is first asked for: that takes some milliseconds, and
// an opening asks several times.
var schemas = func() (list []func() ([]Object, error)) {
	for version := range len(migrations) + 1 {
		list = append(list, sync.OnceValues(func() ([]Object, error) { return schemaOf(version) }))
	}
	return list
}()

func schemaOf(version int) ([]Object, error) {
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
