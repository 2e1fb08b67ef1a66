module github.com/txidem/txidem-go/examples/payments

go 1.25.0

replace github.com/txidem/txidem-go => ../../

replace github.com/txidem/txidem-go/integration => ../../integration
