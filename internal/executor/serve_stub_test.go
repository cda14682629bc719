package executor_test

func serveInherited() {}
