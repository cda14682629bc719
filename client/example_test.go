package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// serveExample serves reg on a new socket until stop is called.
func serveExample(path string, reg *server.Registry) (stop func()) {
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.New(reg, server.Options{}).ServeListener(ctx, l) }()
	return func() {
		cancel()
		<-served
	}
}

func exampleSocket() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "duet")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "s"), func() { os.RemoveAll(dir) }
}

// A call, and its possible outcomes.
func Example() {
	path, remove := exampleSocket()
	defer remove()
	defer serveExample(path, standard())()

	ctx := context.Background()
	c, err := client.Dial(ctx, client.Socket(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	var got struct{ Name string }
	err = c.Call(ctx, "echo", map[string]string{"name": "Ada"}, &got)
	fmt.Println(got.Name, err)

	err = c.Call(ctx, "fail", nil, nil, client.WithTimeout(time.Minute))
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Code, e.Message)
	}
	fmt.Println(errors.Is(err, client.Kind("task_not_found")), client.KindOf(err))
	// Output:
	// Ada <nil>
	// -32000 Task not found: x
	// true task_not_found
}

// A server with lower limits for messages.
func ExampleWithMaxMessage() {
	path, remove := exampleSocket()
	defer remove()
	defer serveExample(path, standard())()
	c, err := client.Dial(context.Background(), client.Socket(path),
		client.WithMaxMessage(1<<10), client.WithLimits(frame.Limits{MaxFrame: 1 << 20}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	err = c.Call(context.Background(), "echo", strings.Repeat("long ", 1000), nil)
	fmt.Println(errors.Is(err, client.ErrTooLong))
	// Output: true
}

// Notifications and requests from the server.
func ExampleClient_On() {
	path, remove := exampleSocket()
	defer remove()
	defer serveExample(path, standard())()
	c, err := client.Dial(context.Background(), client.Socket(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	done := make(chan struct{})
	c.On("tick", func(p params) {
		fmt.Println("tick", string(p))
		if string(p) == `{"n":2}` {
			close(done)
		}
	})
	c.Handle("whatToDrink", func(context.Context, params) (any, error) { return "tea", nil })

	c.Call(context.Background(), "tell", map[string]int{"Count": 2}, nil)
	<-done
	var answer string
	c.Call(context.Background(), "ask", map[string]string{"Method": "whatToDrink"}, &answer)
	fmt.Println(answer)
	// Output:
	// tick {"n":1}
	// tick {"n":2}
	// tea
}

// Events continue after the last one when the server was restarted.
func Example_events() {
	path, remove := exampleSocket()
	defer remove()
	reg, log := standard(), newEventLog()
	log.register(reg)
	stop := serveExample(path, reg)

	ctx := context.Background()
	c, err := client.Dial(ctx, client.Socket(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	events := make(chan eventstream.Event)
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{Since: new(int64)}, func(e eventstream.Event) { events <- e })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sub.Close()
	next := func() {
		e := <-events
		fmt.Println(e.Seq, e.Kind)
	}
	log.add("approval.opened")
	next()

	stop()
	log.add("approval.closed") // no client is connected
	defer serveExample(path, reg)()
	next()
	// Output:
	// 1 approval.opened
	// 2 approval.closed
}

// A client that reports the state of its connection.
func ExampleClient_OnState() {
	path, remove := exampleSocket()
	defer remove()
	stop := serveExample(path, standard())
	states := make(chan client.State)
	c, err := client.Dial(context.Background(), client.Socket(path), client.WithSetup(func(c *client.Client) {
		c.OnState(func(s client.State) { states <- s })
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-states)
	stop()
	fmt.Println(<-states)
	fmt.Println(<-states)
	defer serveExample(path, standard())()
	fmt.Println(<-states)
	fmt.Println(c.Call(context.Background(), "echo", 1, nil))
	c.Close()
	fmt.Println(<-states)
	// Output:
	// connected
	// disconnected
	// reconnecting
	// connected
	// <nil>
	// closed
}
