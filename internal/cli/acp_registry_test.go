package cli_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRegistryEntry checks that the entry for the agent registry has every field that the
// registry's schema requires and no other. It must cover the platforms that `make cross`
// builds for, each with an archive of the entry's own version, started as an agent.
func TestRegistryEntry(t *testing.T) {
	t.Parallel()
	type target struct {
		Archive string            `json:"archive"`
		Command string            `json:"cmd"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	var entry struct {
		ID           string   `json:"id"`
		Name         string   `json:"name"`
		Version      string   `json:"version"`
		Description  string   `json:"description"`
		Repository   string   `json:"repository"`
		Authors      []string `json:"authors"`
		License      string   `json:"license"`
		Distribution struct {
			Binary map[string]target `json:"binary"`
		} `json:"distribution"`
	}
	text, err := os.ReadFile("../../docs/acp-registry/agent.json")
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&entry))
	assert.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9-]*$`), entry.ID)
	assert.Regexp(t, regexp.MustCompile(`^\d+\.\d+\.\d+$`), entry.Version)
	assert.NotEmpty(t, entry.Name)
	assert.NotEmpty(t, entry.Description)
	assert.NotEmpty(t, entry.Authors)
	assert.Equal(t, "MIT", entry.License)
	assert.Equal(t, "https://github.com/duet-rpc/duet-rpc", entry.Repository)

	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	platforms := regexp.MustCompile(`for platform in (.*); do`).FindSubmatch(makefile)
	require.NotNil(t, platforms)
	registry := strings.NewReplacer("/", "-", "amd64", "x86_64", "arm64", "aarch64")
	var built []string
	for platform := range strings.FieldsSeq(string(platforms[1])) {
		built = append(built, registry.Replace(platform))
		it := entry.Distribution.Binary[registry.Replace(platform)]
		assert.Contains(t, it.Archive, "/v"+entry.Version+"/", platform)
		assert.Contains(t, it.Archive, strings.ReplaceAll(platform, "/", "-"), platform)
		assert.True(t, strings.HasPrefix(it.Archive, entry.Repository+"/releases/download/"), it.Archive)
		assert.Equal(t, []string{"acp"}, it.Args, platform)
		program := "./duet-rpc"
		if strings.HasPrefix(platform, "windows") {
			program += ".exe"
		}
		assert.Equal(t, program, it.Command, platform)
	}
	assert.ElementsMatch(t, built, slices.Collect(maps.Keys(entry.Distribution.Binary)))
}

// TestRegistryEntryMatchesSchema validates the entry against the registry's schema
// (agent.schema.json of github.com/agentclientprotocol/registry, as published with version 1).
// TestACPSignIn of internal/e2e/agents checks that its agents offer a way to sign in.
func TestRegistryEntryMatchesSchema(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("../../testdata/acp-registry/agent.schema.json")
	require.NoError(t, err)
	text, err := os.ReadFile("../../docs/acp-registry/agent.json")
	require.NoError(t, err)
	var entry map[string]any
	require.NoError(t, json.Unmarshal(text, &entry))
	require.NoError(t, schema.Validate(entry))
	delete(entry, "distribution")
	require.Error(t, schema.Validate(entry), "the schema says something")
}

// TestRegistryIcon checks that the icon is 16 by 16 and has no colour of its own, as the
// registry requires.
func TestRegistryIcon(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/acp-registry/icon.svg")
	require.NoError(t, err)
	var icon struct {
		Width  string `xml:"width,attr"`
		Height string `xml:"height,attr"`
		Stroke string `xml:"stroke,attr"`
	}
	require.NoError(t, xml.Unmarshal(text, &icon))
	assert.Equal(t, []string{"16", "16", "currentColor"}, []string{icon.Width, icon.Height, icon.Stroke})
	assert.NotRegexp(t, `#[0-9a-fA-F]{3}|rgb`, string(text))
}
