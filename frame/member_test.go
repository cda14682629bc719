package frame_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
)

func TestAMemberIsTheLastWithItsName(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{"a":1,"b":2}`, `2`},
		{`{"b":1,"b":{"b":3}}`, `{"b":3}`},
		{`{"\u0062" : "x" }`, `"x"`},
		{`{"B":1}`, ``},
		{`["b"]`, ``},
		{``, ``},
	} {
		assert.Equal(t, c.want, string(frame.Member([]byte(c.object), "b")), c.object)
	}
}
