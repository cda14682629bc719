package server_test

import (
	"context"
	"fmt"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

type greetParams struct {
	Name   string `json:"name" doc:"Whom to greet."`
	Polite bool   `json:"polite,omitempty"`
}

type greetResult struct {
	Text string `json:"text"`
}

func greet(_ context.Context, p greetParams) (greetResult, error) {
	if p.Polite {
		return greetResult{"How do you do, " + p.Name + "?"}, nil
	}
	return greetResult{"Hi " + p.Name}, nil
}

// A program that has one method, and its client in the same process, with either framing.
func Example() {
	reg := server.NewRegistry()
	server.Handle(reg, "greet", greet, server.Doc("Greets somebody."))
	srv := server.New(reg, server.Options{})

	for _, framing := range []frame.Framing{frame.LSP, frame.NDJSON} {
		near, far := server.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error)
		go func() { served <- srv.Serve(ctx, far, framing) }()

		client := server.New(server.NewRegistry(), server.Options{}).Connect(ctx, near, framing)
		var result greetResult
		err := client.Call(ctx, "greet", greetParams{Name: "Ada", Polite: true}, &result)
		fmt.Println(result.Text, err)
		err = client.Call(ctx, "greet", map[string]any{"name": 5}, nil)
		fmt.Println(err)

		cancel()
		fmt.Println(<-served)
		<-client.Done()
	}
	// Output:
	// How do you do, Ada? <nil>
	// jsonrpc2: code -32602 message: Invalid params: name: expected string, received integer
	// <nil>
	// How do you do, Ada? <nil>
	// jsonrpc2: code -32602 message: Invalid params: name: expected string, received integer
	// <nil>
}

// Parameters by name are a struct, parameters by position a slice.
func ExampleHandle() {
	reg := server.NewRegistry()
	server.Handle(reg, "greet", greet)
	server.Handle(reg, "sum", func(_ context.Context, numbers []float64) (sum float64, err error) {
		for _, n := range numbers {
			sum += n
		}
		return sum, nil
	})
	near, far := server.Pipe()
	served := server.New(reg, server.Options{}).Connect(context.Background(), far, frame.LSP)
	client := server.New(server.NewRegistry(), server.Options{}).Connect(context.Background(), near, frame.LSP)

	var greeting greetResult
	err := client.Call(context.Background(), "greet", map[string]string{"name": "Ada"}, &greeting)
	fmt.Println(greeting.Text, err)
	var sum float64
	err = client.Call(context.Background(), "sum", []float64{1, 2, 3.5}, &sum)
	fmt.Println(sum, err)
	err = client.Call(context.Background(), "sum", []any{1, "2"}, &sum)
	fmt.Println(err)

	client.End()
	<-client.Done()
	<-served.Done()
	// Output:
	// Hi Ada <nil>
	// 6.5 <nil>
	// jsonrpc2: code -32602 message: Invalid params: params[1]: expected number, received string
}

// One registration is all the description that a method needs.
func ExampleRegistry_Methods() {
	reg := server.NewRegistry()
	server.Handle(reg, "greet", greet, server.Doc("Greets somebody."))
	for _, m := range reg.Methods() {
		fmt.Println(m.Name, m.Params(), "→", m.Result())
	}
	// Output: greet {name: string, polite?: boolean} → {text: string}
}

// A long-running handler may call its peer.
func ExampleConn_Call() {
	reg := server.NewRegistry()
	server.Handle(reg, "order", func(ctx context.Context, _ struct{}) (string, error) {
		var drink string
		err := server.ConnFrom(ctx).Call(ctx, "whatToDrink", nil, &drink)
		return "one " + drink, err
	}, server.LongRunning())
	near, far := server.Pipe()
	waiter := server.New(reg, server.Options{}).Connect(context.Background(), far, frame.NDJSON)

	answers := server.NewRegistry()
	server.Handle(answers, "whatToDrink", func(context.Context, struct{}) (string, error) { return "tea", nil })
	guest := server.New(answers, server.Options{}).Connect(context.Background(), near, frame.NDJSON)

	var got string
	err := guest.Call(context.Background(), "order", nil, &got)
	fmt.Println(got, err)

	guest.End()
	<-guest.Done()
	<-waiter.Done()
	// Output: one tea <nil>
}

// Broadcast notifies every connection.
func ExampleServer_Broadcast() {
	near, far := server.Pipe()
	srv := server.New(server.NewRegistry(), server.Options{})
	conn := srv.Connect(context.Background(), far, frame.LSP)

	heard := make(chan string)
	listening := server.NewRegistry()
	server.Handle(listening, "event.tick", func(_ context.Context, p struct{ N int }) (struct{}, error) {
		heard <- fmt.Sprint("tick ", p.N)
		return struct{}{}, nil
	})
	listener := server.New(listening, server.Options{}).Connect(context.Background(), near, frame.LSP)

	reached, err := srv.Broadcast("event.tick", map[string]int{"N": 1})
	fmt.Println(<-heard, reached, err)

	conn.End()
	<-conn.Done()
	<-listener.Done()
	// Output: tick 1 1 <nil>
}
