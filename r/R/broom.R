# What other packages ask of a model: rows of broom, the number of rows, the call and the formula.

#' Tables of a released model for broom
#'
#' tidy() gives a row for each coefficient, glance() one row for the model, and augment() new rows with their predictions.
#' They are methods of the generics of broom: library(broom), or library(generics), makes them visible.
#'
#' Errors cover that the rows are a sample and the noise for privacy; they need intervals = in confide_fit(), and without it
#' tidy() has estimates alone. What is NA in glance() is not public or does not apply: under neighbours =
#' "add-or-remove-one" the number of rows is known to lie between two bounds only.
#'
#' nobs() gives the number of rows as the guarantee knows it, and NA where that is not public. formula() gives the formula.
#' update() fits again with other arguments, which is a release of its own and costs what its budget says.
#'
#' @param x,object A model from confide_fit() or confide_load().
#' @param conf.int Whether to add the ends of confidence intervals.
#' @param conf.level Confidence level of each interval by itself.
#' @param exponentiate Whether estimates and ends of intervals are exponentiated, to odds ratios or rate ratios. Standard
#'   errors, statistics and p-values stay those of the logarithms, as in broom.
#' @param units "original" for the units of the table, or "encoded" for those of the columns as they enter the fit.
#' @param newdata A data frame with the columns of the schema. A model keeps none of the rows that it was fitted to.
#' @param ... For augment() passed to predict(), such as type = "class"; else not used.
#' @return tidy(): term, unit, estimate and, with intervals, std.error, statistic, p.value, and on request conf.low and
#'   conf.high. glance(): nobs, epsilon, delta, rho, neighbours, mechanism and whether seeds or code of the user took
#'   the guarantee away (void). augment(): newdata with the column .fitted. Tibbles where tibble is installed, else data
#'   frames.
#' @examples
#' if (confide_available() && requireNamespace("generics", quietly = TRUE)) {
#'   schema <- confide_schema(x = c(-1, 1), target = list(y = c(negative = 0, positive = 1)))
#'   rows <- data.frame(x = runif(2000, -1, 1))
#'   rows$y <- as.integer(rows$x > 0.1)
#'   model <- confide_fit(y ~ x, rows, epsilon = 2, schema = schema, model = "logistic")
#'   generics::tidy(model)
#'   generics::glance(model)
#'   generics::augment(model, newdata = head(rows))
#' }
#' @name confide_tables
NULL

#' @rdname confide_tables
#' @exportS3Method generics::tidy
tidy.confide_model <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, units = NULL, ...) {
  python <- .python(x)
  has_errors <- .has_intervals(python)
  if (conf.int && !has_errors) .refuse_without_intervals()
  table <- if (has_errors) .summary_table(python, conf.level, units, NULL) else .coefficients(python, units)$table
  tidied <- data.frame(term = table$name, unit = table$unit, estimate = table$estimate, stringsAsFactors = FALSE)
  if (has_errors) {
    tidied$std.error <- table$total_error
    tidied$statistic <- table$estimate / table$total_error
    tidied$p.value <- table$p_value
  }
  if (conf.int) tidied[c("conf.low", "conf.high")] <- table[c("low", "high")]
  if (exponentiate) {
    if (!nzchar(.ratio(python))) stop("exponentiate = TRUE needs a model of log-odds or of log-rates.", call. = FALSE)
    titles <- intersect(c("estimate", "conf.low", "conf.high"), names(tidied))
    tidied[titles] <- exp(tidied[titles])
  }
  .as_tibble(tidied)
}

#' @rdname confide_tables
#' @exportS3Method generics::glance
glance.confide_model <- function(x, ...) {
  said <- .r(.python(x)$guarantee_$to_dict())
  part <- function(name) if (is.null(said$budget[[name]])) NA_real_ else as.numeric(said$budget[[name]])
  .as_tibble(data.frame(
    nobs = stats::nobs(x), epsilon = part("epsilon"), delta = part("delta"), rho = part("rho"),
    neighbours = said$neighbours, mechanism = said$mechanism, void = !is.null(said$void), stringsAsFactors = FALSE
  ))
}

#' @rdname confide_tables
#' @exportS3Method generics::augment
augment.confide_model <- function(x, newdata, ...) {
  if (missing(newdata)) {
    stop("give newdata = : a released model keeps none of the rows that it was fitted to.", call. = FALSE)
  }
  predicted <- stats::predict(x, newdata, ...)
  if (!is.matrix(predicted)) return(.as_tibble(cbind(newdata, .fitted = predicted)))
  colnames(predicted) <- paste0(".fitted_", colnames(predicted))
  .as_tibble(cbind(newdata, predicted))
}

#' @rdname confide_tables
#' @importFrom stats nobs
#' @export
nobs.confide_model <- function(object, ...) {
  bounds <- unlist(.r(.python(object)$guarantee_$n_rows))
  if (length(bounds) == 2 && bounds[1] == bounds[2]) as.integer(bounds[1]) else NA_integer_
}

#' @rdname confide_tables
#' @importFrom stats formula
#' @export
formula.confide_model <- function(x, ...) {
  if (is.null(x$formula)) stop("the model was fitted to all columns of its schema, or loaded: it has no formula.", call. = FALSE)
  x$formula
}

.as_tibble <- function(frame) if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(frame) else frame

# What the exponential of a coefficient is called, such as "odds ratio", or "".
.ratio <- function(python) .r(reticulate::import("confide.estimators.coefficients", convert = FALSE)$ratio_of_scores(python))

# A call without the rows that do.call() may have written into it: update() needs the call, and a saved model has no rows.
.without_values <- function(part) {
  if (is.call(part)) {
    attributes(part) <- NULL # a formula's environment among them
    for (place in seq_along(part)) if (!identical(part[[place]], quote(expr = ))) part[[place]] <- .without_values(part[[place]])
    return(part)
  }
  is_short <- is.null(part) || is.symbol(part) || (is.atomic(part) && length(part) == 1 && is.null(attributes(part)))
  if (is_short) part else as.name("<not kept>")
}
