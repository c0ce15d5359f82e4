library(testthat)
library(confide)

test_check("confide")
