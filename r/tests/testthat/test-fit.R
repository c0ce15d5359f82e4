test_that("a formula chooses columns, and the ledger is charged", {
  skip_without_confide()
  ledger <- confide_ledger(epsilon = 4)
  model <- confide_fit(buys ~ age + sex, rows_of(), epsilon = 3, schema = schema_of(), model = "logistic", ledger = ledger)
  expect_s3_class(model, "confide_model")
  expect_named(coef(model), c("age", "sex: m", "(Intercept)"))
  expect_equal(as.data.frame(summary(model))$unit[1], "per 1")
  charged <- summary(ledger)
  expect_equal(charged$epsilon, 3)
  expect_equal(charged$purpose, "LogisticRegression.fit")
  expect_error(
    confide_fit(buys ~ age, rows_of(), epsilon = 3, schema = schema_of(), ledger = ledger),
    "Nothing was used or charged"
  )
  expect_output(print(ledger), "left")
})

test_that("a dot, products, and a schema alone", {
  skip_without_confide()
  both <- confide_fit(buys ~ ., rows_of(), epsilon = 9, schema = schema_of(), model = "logistic")
  expect_named(coef(both), c("age", "sex: m", "city: y", "city: (missing)", "(Intercept)"))
  product <- confide_fit(buys ~ age * sex, rows_of(), epsilon = 9, schema = schema_of(), model = "logistic")
  expect_true(any(grepl("age.*sex|sex.*age", names(coef(product)))))
  alone <- confide_fit(schema_of(), rows_of(), epsilon = 9, model = "logistic", max_rows_per_person = 2)
  expect_named(coef(alone), names(coef(both)))
})

test_that("codes for missing cells are declared as a vector", {
  skip_without_confide()
  described <- function(missing) {
    confide_schema(age = list(low = 18, high = 90, missing = missing), target = list(buys = c(negative = "no", positive = "yes")))
  }
  rows <- rows_of()
  rows$age[1:300] <- c(999, -9)
  model <- confide_fit(buys ~ age, rows, epsilon = 9, schema = described(c(999, -9)), model = "logistic")
  expect_named(coef(model), c("age", "age: (missing)", "(Intercept)"))
  expect_s3_class(confide_fit(buys ~ age, rows, epsilon = 9, schema = described(999), model = "logistic"), "confide_model")
})

test_that("what cannot be used is refused before anything is charged", {
  skip_without_confide()
  ledger <- confide_ledger(epsilon = 4)
  expect_error(confide_fit(buys ~ age, rows_of(), epsilon = 1, ledger = ledger), "needs schema =")
  expect_error(model_of(ledger = ledger), "give epsilon, or rho")
  expect_error(confide_fit(buys ~ log(age), rows_of(), epsilon = 1, schema = schema_of()), "does not describe")
  expect_error(confide_fit(sex ~ age, rows_of(), epsilon = 1, schema = schema_of()), "must be buys")
  expect_error(confide_fit(buys ~ age, rows_of()["sex"], epsilon = 1, schema = schema_of(), ledger = ledger), "data lacks")
  expect_error(model_of(epsilon = 1, ledger = ledger, C = 1), "use alpha")
  expect_error(confide_schema("no such file.toml"), "no such file")
  expect_equal(nrow(summary(ledger)), 0)
})

test_that("words of glm are answered in words of R, and nothing is charged", {
  skip_without_confide()
  ledger <- confide_ledger(epsilon = 4)
  fit <- function(...) confide_fit(buys ~ age, rows_of(), epsilon = 1, schema = schema_of(), ledger = ledger, ...)
  expect_error(fit(family = binomial()), 'family = is not a parameter of confide_fit\\(\\): choose the model by model =')
  expect_error(fit(subset = age > 30), "subset = is not a parameter")
  expect_error(fit(weights = 1), "a column of the data that the schema names")
  expect_error(fit(model = "logit"), '"logistic" is a binomial family')
  expect_error(confide_schema(age = c(18, 90), target = list(hours = c(0, 80))), "c\\(low = 0, high = 80\\) for a number")
  expect_error(confide_schema(age = c(18, 90), target = list(a = c("n", "y"))), 'c\\(negative = "n", positive = "y"\\)')
  expect_equal(nrow(summary(ledger)), 0)
})

test_that("one column of interest is named as it is", {
  skip_without_confide()
  model <- confide_fit(buys ~ age + sex, rows_of(), epsilon = 9, delta = 1e-6, schema = schema_of(), model = "logistic",
                       interest = "sex")
  expect_true(any(grepl("sex", rownames(confint(model)))))
})

test_that("predictions are those that Python makes", {
  skip_without_confide()
  model <- model_of(epsilon = 9, model = "logistic")
  fresh <- rows_of(200, 7)
  chances <- predict(model, fresh)
  expect_length(chances, 200)
  expect_equal(stats::qlogis(chances), predict(model, fresh, type = "link"), tolerance = 1e-6)
  expect_equal(predict(model, fresh, type = "class"), ifelse(chances > 0.5, "yes", "no"))
  expect_gt(mean(predict(model, fresh, type = "class") == fresh$buys), 0.75)
  # By hand: the row is clipped to its bounds, and a number counts per 1.
  moved <- fresh[rep(1, 2), ]
  moved$age <- c(40, 41)
  expect_equal(diff(predict(model, moved, type = "link")), coef(model)[["age"]], tolerance = 1e-6)
})

test_that("the positive class of the schema is the one that is shown", {
  skip_without_confide()
  turned <- schema_of(list(buys = c(negative = "yes", positive = "no")))
  model <- confide_fit(buys ~ age, rows_of(), epsilon = 9, schema = turned, model = "logistic")
  expect_lt(coef(model)[["age"]], 0)
  ages <- data.frame(age = c(20, 80))
  expect_gt(predict(model, ages)[1], predict(model, ages)[2])
  expect_gt(predict(model, ages, type = "link")[1], 0)
})

test_that("regressions and models without probabilities predict too", {
  skip_without_confide()
  schema <- schema_of(list(spends = c(low = 0, high = 100)))
  line <- confide_fit(spends ~ age + sex, rows_of(), epsilon = 9, schema = schema, model = "ridge")
  expect_gt(stats::cor(predict(line, rows_of(200, 3)), rows_of(200, 3)$spends), 0.9)
  curves <- confide_fit(spends ~ age + sex, rows_of(), epsilon = 9, schema = schema)
  expect_gt(stats::cor(predict(curves, rows_of(200, 3)), rows_of(200, 3)$spends), 0.9)
  machine <- model_of(epsilon = 9, model = "svm")
  expect_true(all(predict(machine, rows_of(50)) %in% c("yes", "no")))
  expect_error(predict(machine, rows_of(50), type = "response"), "no probabilities")
})

test_that("costs have a gamma loss, and counts that vary more a negative binomial one", {
  skip_without_confide()
  set.seed(4)
  rows <- data.frame(age = runif(6000, 18, 90), years = runif(6000, 0.5, 5))
  rows$price <- 300 * exp(rows$age / 60 - 1) * rgamma(6000, 2, 2)
  rows$visits <- rnbinom(6000, size = 2, mu = rows$years * exp(rows$age / 60 - 1))
  costs <- confide_schema(age = c(18, 90), target = list(price = c(low = 1, high = 5000)))
  model <- confide_fit(price ~ age, rows, epsilon = 9, schema = costs, loss = "gamma")
  expect_equal(mean(predict(model, rows)) / mean(rows$price), 1, tolerance = 0.15)
  counts <- confide_schema(age = c(18, 90), target = list(visits = list(
    low = 0, high = 40, exposure = list(column = "years", low = 0.5, high = 5))))
  model <- confide_fit(visits ~ age + offset(log(years)), rows, epsilon = 9, schema = counts,
                       loss = "negative_binomial", dispersion = 0.5)
  expect_equal(sum(predict(model, rows)) / sum(rows$visits), 1, tolerance = 0.15)
  expect_error(confide_fit(visits ~ age, rows, epsilon = 9, schema = counts, loss = "gamma"), "low above 0")
})

test_that("an offset is the exposure that the schema names", {
  skip_without_confide()
  set.seed(3)
  rows <- data.frame(age = runif(4000, 18, 90), years = runif(4000, 0.5, 5))
  rows$visits <- rpois(4000, rows$years * exp(rows$age / 60 - 1))
  schema <- confide_schema(age = c(18, 90), target = list(visits = list(
    low = 0, high = 40, exposure = list(column = "years", low = 0.5, high = 5))))
  fit <- function(formula) confide_fit(formula, rows, epsilon = 9, schema = schema, model = "poisson")
  model <- fit(visits ~ age + offset(log(years)))
  expect_equal(coef(model)[["age"]], 1 / 60, tolerance = 0.2)
  ages <- data.frame(age = c(30, 60), years = c(1, 4))
  rates <- predict(model, ages, exposure = 1)
  expect_equal(predict(model, ages), rates * c(1, 4), tolerance = 1e-9)
  expect_equal(predict(model, ages["age"], exposure = 2), 2 * rates, tolerance = 1e-9)
  expect_error(predict(model, ages["age"]), "newdata lacks the exposure years")
  expect_equal(predict(fit(visits ~ age), ages, exposure = 1), rates, tolerance = 0.2)
  json <- tempfile(fileext = ".json")
  confide_save(model, json)
  expect_equal(predict(confide_load(json), ages), predict(model, ages), tolerance = 1e-9)
  expect_gt(nrow(confide_evaluate(model, rows, epsilon = 5)), 0)
  expect_error(fit(log(visits + 1) ~ age), "a column as it is, and not log\\(visits \\+ 1\\)")
  expect_error(fit(visits ~ age - 1), "fit_intercept = FALSE")
  expect_error(fit(visits ~ age + offset(years)), "must be offset\\(log\\(years\\)\\)")
  expect_error(fit(visits ~ age + offset(log(years)) + offset(log(years * 2))), "must be offset")
  plain <- confide_schema(age = c(18, 90), target = list(visits = c(low = 0, high = 40)))
  expect_error(confide_fit(visits ~ age + offset(log(years)), rows, epsilon = 9, schema = plain, model = "poisson"),
               "needs an exposure in the target")
  expect_error(confide_fit(visits ~ age, rows["age"], epsilon = 9, schema = schema, model = "poisson"), "data lacks")
})
