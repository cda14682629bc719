package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSnippetBeginsNearMatch(t *testing.T) {
	assert.Equal(t, "…You asked: «hi» «there» and more", aroundMatch("Hello from the demo agent. You asked: «hi» «there» and more"))
	assert.Equal(t, "think «hi»", aroundMatch("think «hi»"))
	assert.Equal(t, "…xxxxxxxxxxxxxxxx«hi»", aroundMatch("xxxxxxxxxxxxxxxxxxxxxxxxxxx«hi»"))
	assert.Equal(t, "…中中中中中中中中中中中中中中中中«中»", aroundMatch("中中中中中中中中中中中中中中中中中中«中»"))
	assert.Equal(t, "nothing is marked here at all", aroundMatch("nothing is marked here at all"))
}
