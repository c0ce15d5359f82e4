.KINDS <- c("additive", "logistic", "svm", "kernel-svm", "ridge", "huber", "poisson")

#' Fit a model and release it with differential privacy
#'
#' The rows are read once. What the fit costs is charged to the ledger before a row is used, and what is returned holds only
#' noisy numbers and public facts.
#'
#' @param formula A formula, income ~ age + sex, whose columns the schema describes; a dot stands for all of them, and a:b
#'   adds products of two columns. Counts may have offset(log(years)), where the schema names the exposure. Or a schema,
#'   or the path of one, for all of its columns.
#' @param data A data frame with the columns of the schema and of the target.
#' @param epsilon,delta,rho What the fit may cost, as in confide_budget().
#' @param ledger A ledger from confide_ledger(), or NULL, if the fit is charged nowhere.
#' @param schema A schema from confide_schema(), or the path of a TOML file; required beside a formula.
#' @param model "additive" (curves for numbers), "logistic", "svm", "kernel-svm", "ridge", "huber" or "poisson".
#' @param intervals The share of the budget that is kept for confidence intervals, from 0 to 0.9, or "auto".
#' @param ... Further parameters of the model in Python, such as neighbours = "replace-one" or max_rows_per_person = 2.
#' @return An object of class confide_model, with methods print(), summary(), coef(), confint(), predict() and plot().
#' @examples
#' if (confide_available()) {
#'   schema <- confide_schema(x = c(-1, 1), group = c("a", "b"),
#'                            target = list(y = c(negative = 0, positive = 1)))
#'   rows <- data.frame(x = runif(2000, -1, 1), group = sample(c("a", "b"), 2000, replace = TRUE))
#'   rows$y <- as.integer(rows$x + (rows$group == "a") > 0.5)
#'   model <- confide_fit(y ~ x + group, rows, epsilon = 2, schema = schema, model = "logistic")
#'   predict(model, head(rows))
#' }
#' @export
confide_fit <- function(formula, data, epsilon = NULL, ledger = NULL, schema = NULL, model = "additive", delta = NULL,
                        rho = NULL, intervals = 0, ...) {
  .refuse_words_of_glm(names(substitute(list(...))))
  call <- match.call()
  call[[1]] <- quote(confide_fit)
  confide <- .confide()
  if (!is.character(model) || length(model) != 1 || !model %in% .KINDS) {
    near <- if (is.character(model) && length(model) == 1) paste0(": ", .unknown(model, .KINDS)) else ""
    stop("model must be one of ", paste0('"', .KINDS, '"', collapse = ", "), near, '; "logistic" is a binomial family, "poisson" ',
         'a Poisson one, "ridge" a Gaussian one.', call. = FALSE)
  }
  budget <- confide_budget(epsilon, delta, rho)
  if (is.character(schema)) schema <- confide_schema(schema)
  if (inherits(formula, "formula")) {
    if (is.null(schema)) {
      stop("a formula needs schema =, which says the public bounds of each column: they are never taken from the data.",
           call. = FALSE)
    }
    described <- .with_formula(schema, formula, data)
  } else {
    if (!is.null(schema)) stop("give a formula and a schema, or a schema alone.", call. = FALSE)
    schema <- if (is.character(formula)) confide_schema(formula) else formula
    if (!inherits(schema, "confide.features.schema.Schema")) {
      stop("the first argument must be a formula or a schema.", call. = FALSE)
    }
    formula <- NULL
    if (is.null(.r(schema$target))) stop("the schema needs a target: its column and labels or bounds.", call. = FALSE)
    described <- list(schema = schema, response = .r(schema$target$column))
  }
  given <- .whole(list(...))
  # Names of columns are a list in Python, also a single one.
  for (each in intersect(c("interest", "risk_differences"), names(given))) {
    if (is.character(given[[each]])) given[[each]] <- as.list(given[[each]])
  }
  parameters <- c(list(budget = budget, schema = described$schema, ledger = .ledger_of(ledger)), given)
  if (!identical(intervals, 0)) {
    if (model == "ridge") parameters$intervals <- TRUE else parameters$inference_share <- intervals
  }
  made <- .tell(do.call(.estimator(confide, model, described$schema), parameters))
  names <- .columns_of(described$schema)
  person <- .r(described$schema$person)
  weight <- .r(described$schema$to_dict())$weight$column
  rows <- .frame(data, c(names, person, weight, .exposure_of(described$schema)))
  if (is.null(data[[described$response]])) stop("data lacks the column ", .unknown(described$response, colnames(data)), ".", call. = FALSE)
  .tell(made$fit(rows, .column(data[[described$response]])))
  .model(made, formula, described$response, .without_values(call))
}

# What glm() has under another name, or cannot be had here. Nothing of it is evaluated.
.GLM <- c(
  family = 'choose the model by model =: "logistic" for binomial(), "poisson" for poisson(), "ridge" for gaussian(); loss = "gamma" for Gamma("log")',
  weights = "the weights of rows are a column of the data that the schema names: weight = list(column = , high = )",
  subset = "choose the rows of data before the fit, by a public rule",
  na.action = "a column whose cells may be missing says so in its description: list(low = , high = , missing = TRUE)",
  offset = "write offset(log(years)) in the formula; the target of the schema names the exposure and its bounds",
  contrasts = "the first level of a category is its reference: order the levels in the schema",
  start = "the minimum does not depend on a start",
  control = "the solver has no settings that change a release"
)

.refuse_words_of_glm <- function(given) {
  found <- intersect(given, names(.GLM))
  if (length(found) > 0) stop(found[[1]], " = is not a parameter of confide_fit(): ", .GLM[[found[[1]]]], ".", call. = FALSE)
}

.estimator <- function(confide, model, schema) {
  target <- .r(schema$to_dict())$target
  is_number <- !is.null(target$low)
  switch(model,
    additive = if (is_number) confide$AdditiveRegressor else confide$AdditiveClassifier,
    logistic = confide$LogisticRegression,
    svm = confide$LinearSVC,
    `kernel-svm` = confide$KernelSVC,
    ridge = confide$Ridge,
    huber = confide$HuberRegressor,
    poisson = confide$PoissonRegressor
  )
}

# The column of exposures that a schema names, or NULL.
.exposure_of <- function(schema) .r(schema$to_dict())$target$exposure$column

.columns_of <- function(schema) unlist(.r(schema$column_names))

# The released model as an object of R. It keeps the text of its file, so that saveRDS() and readRDS() keep the model. The
# environment of a formula may hold the rows, and saveRDS() would write them: it is not kept.
.model <- function(python, formula, response, call = NULL) {
  if (!is.null(formula)) environment(formula) <- globalenv()
  path <- tempfile(fileext = ".json")
  on.exit(unlink(path))
  .tell(python$save(path))
  text <- readChar(path, file.info(path)$size, useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  structure(list(python = python, text = text, formula = formula, response = response, call = call), class = "confide_model")
}

.python <- function(object) {
  if (!reticulate::py_is_null_xptr(object$python)) return(object$python)
  path <- tempfile(fileext = ".json")
  on.exit(unlink(path))
  writeChar(object$text, path, eos = NULL, useBytes = TRUE)
  .tell(.confide()$load(path))
}

#' Save and load a released model
#'
#' The file is JSON, and Python's confide.load reads it too.
#'
#' @param object A model from confide_fit().
#' @param file Where the model is written, or from where it is read.
#' @param overwrite Whether a file that exists is replaced.
#' @return confide_load() gives an object of class confide_model; confide_save() gives it invisibly.
#' @export
confide_save <- function(object, file, overwrite = FALSE) {
  .tell(.python(object)$save(path.expand(file), overwrite = overwrite))
  invisible(object)
}

#' @rdname confide_save
#' @export
confide_load <- function(file) {
  made <- .tell(.confide()$load(path.expand(file)))
  schema <- .r(made$schema)
  response <- if (is.null(schema) || is.null(.r(made$schema$target))) NULL else .r(made$schema$target$column)
  .model(made, NULL, response)
}
