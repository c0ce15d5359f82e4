# Made-up rows, and a schema that describes them.

skip_without_confide <- function() {
  testthat::skip_if_not(confide_available(), "the Python library 'confide' was not found")
}

rows_of <- function(n = 3000, seed = 1) {
  set.seed(seed)
  rows <- data.frame(
    age = runif(n, 15, 95),
    sex = factor(sample(c("f", "m"), n, replace = TRUE)),
    city = sample(c("x", "y", NA), n, replace = TRUE)
  )
  score <- (rows$age - 50) / 10 + ifelse(rows$sex == "m", 1, -1)
  rows$buys <- ifelse(score + rlogis(n) > 0, "yes", "no")
  rows$spends <- pmax(0, pmin(100, 50 + 10 * score + rnorm(n)))
  rows
}

schema_of <- function(target = list(buys = c(negative = "no", positive = "yes"))) {
  confide_schema(
    age = c(18, 90), sex = c("f", "m"), city = list(categories = c("x", "y"), missing = TRUE), target = target
  )
}

# A model with these parameters; it is fitted once.
fitted <- new.env()
model_of <- function(...) {
  key <- paste(deparse(substitute(list(...))), collapse = "")
  if (is.null(fitted[[key]])) {
    fitted[[key]] <- confide_fit(buys ~ age + sex + city, rows_of(), schema = schema_of(), ...)
  }
  fitted[[key]]
}
