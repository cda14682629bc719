package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// FormValues are the values of a form, of which some were given as NAME=VALUE.
func FormValues(a wire.Approval, given []string) (json.RawMessage, error) {
	f, err := form.Read(a.Schema)
	if err != nil {
		return nil, errors.New(term.Line(err.Error()))
	}
	values := f.Defaults()
	for _, pair := range given {
		name, typed, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--field takes NAME=VALUE, got %q", pair)
		}
		field, err := f.Field(name)
		if err == nil {
			values[name], err = field.Parse(typed)
		}
		if err != nil {
			return nil, errors.New(term.Line(err.Error()))
		}
	}
	content := f.Values(values)
	if err := f.Check(content); err != nil {
		return nil, errors.New(term.Line(err.Error()))
	}
	return content, nil
}

// WithOption is a decision with the option that a word names: by its number, id or
// name.
func WithOption(d wire.Decision, a wire.Approval, word string) (wire.Decision, error) {
	if word == "" {
		return d, nil
	}
	var names []string
	for i, o := range a.Options {
		if word == strconv.Itoa(i+1) || word == o.OptionID || strings.EqualFold(word, o.Name) {
			d.Option = o.OptionID
			return d, nil
		}
		names = append(names, strconv.Itoa(i+1)+" "+o.InWords())
	}
	if len(names) == 0 {
		return d, errors.New("--option: the agent offers none")
	}
	return d, errors.New(term.Line(fmt.Sprintf("--option %q is none of: %s", word, strings.Join(names, "; "))))
}
