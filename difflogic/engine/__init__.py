"""Interface of the engines that run and train circuits: methods, arguments and results."""
