#' @export
print.confide_model <- function(x, ...) {
  python <- .python(x)
  cat(.r(reticulate::py_get_attr(reticulate::py_get_attr(python, "__class__"), "__name__")), "released by confide\n")
  if (!is.null(x$formula)) cat("  ", deparse(x$formula), "\n", sep = "")
  cat("\n", .first_line(python), "\n", sep = "")
  invisible(x)
}

.first_line <- function(python) {
  statement <- .r(python$guarantee_$statement())
  paste(strwrap(strsplit(statement, "\n", fixed = TRUE)[[1]][1], 78), collapse = "\n")
}

.has_intervals <- function(python, of = c("_evidence", "_interest")) {
  any(vapply(of, function(name) !is.null(.r(reticulate::py_get_attr(python, name, silent = TRUE))), logical(1)))
}

# Coefficients in the units of the table, as a data frame with name, unit and estimate.
.coefficients <- function(python, units = NULL) {
  module <- reticulate::import("confide.estimators.released", convert = FALSE)
  found <- .tell(module$ReleasedCoefficients$of(python, units))
  rows <- lapply(.r(found$coefficients), function(each) {
    data.frame(name = .r(each$name), unit = .r(each$unit), estimate = .r(each$estimate))
  })
  rows <- do.call(rbind, rows)
  rows$name <- sub("(intercept)", "(Intercept)", rows$name, fixed = TRUE)
  list(table = rows, outcome = .r(found$outcome))
}

#' Methods for released models
#'
#' coef() gives the released coefficients, in the units of the table: per unit of a number, and against a reference level of
#' a category. confint() and the errors of summary() cover that the rows are a sample and the noise for privacy; they need
#' intervals = in confide_fit(). predict() and plot() use nothing but what was released. vcov() is the covariance of these
#' errors, due to sampling and to noise together.
#'
#' For logistic models exp(coef(model)) are odds ratios and exp(confint(model)) their intervals, per unit of the table;
#' summary() shows both. For Poisson models they are rate ratios.
#'
#' @param object,x A model from confide_fit() or confide_load().
#' @param units "original" for the units of the table, or "encoded" for those of the columns as they enter the fit.
#' @param parm Names or numbers of coefficients; all if missing.
#' @param level Confidence level of each interval by itself.
#' @param target "regularised" for intervals of the population's minimiser with the same ridge, or "unregularised" for that
#'   without a ridge. NULL is the first, and with interest the second, which is all that there is then.
#' @param newdata A data frame with the columns of the schema.
#' @param type "response" for the probability of the positive class, or the number that a regression predicts; "class" for
#'   labels; "link" for scores. The default is "response", and "class" for models without probabilities.
#' @param exposure For counts with an exposure: one number, or one for each row. NULL takes the column of exposures of newdata,
#'   for counts as glm() predicts them; 1 is for rates.
#' @param columns Names of the columns whose effects are drawn; all if missing.
#' @param ... Not used: summary(), confint() and vcov() refuse other arguments; for plot() passed to the first call of plot.
#' @return coef() a named vector, whose units summary() shows; confint() and vcov() a matrix; predict() a vector, or a matrix of
#'   probabilities for three or more classes; summary() an object that prints, and that
#'   as.data.frame() turns into its table; plot() the effects, invisibly.
#' @name confide_model
NULL

#' @rdname confide_model
#' @export
coef.confide_model <- function(object, units = NULL, ...) {
  table <- .coefficients(.python(object), units)$table
  stats::setNames(table$estimate, table$name)
}

#' @rdname confide_model
#' @export
confint.confide_model <- function(object, parm, level = 0.95, units = NULL, target = NULL, ...) {
  .no_others(...)
  table <- .summary_table(.python(object), level, units, target)
  found <- as.matrix(table[c("low", "high")])
  tails <- c((1 - level) / 2, 1 - (1 - level) / 2)
  dimnames(found) <- list(table$name, paste(format(100 * tails, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) return(found)
  unknown <- if (is.character(parm)) setdiff(parm, rownames(found)) else character(0)
  if (length(unknown) > 0) stop("there is no coefficient ", .unknown(unknown, rownames(found)), ".", call. = FALSE)
  found[parm, , drop = FALSE]
}

#' @rdname confide_model
#' @export
vcov.confide_model <- function(object, units = NULL, target = "regularised", ...) {
  .no_others(...)
  python <- .python(object)
  if (!.has_intervals(python, "_evidence")) .refuse_without_intervals()
  found <- .tell(python$covariance(target = target, units = units))
  numbers <- .vector(found$to_numpy())
  names <- sub("(intercept)", "(Intercept)", unlist(.r(found$index$tolist())), fixed = TRUE)
  matrix(unlist(numbers), length(names), length(names), dimnames = list(names, names))
}

#' The difference between two values of a column
#'
#' How the score changes from one value of a column to another, all other columns as they are: for logistic models a
#' difference of log-odds, whose exponential is an odds ratio. With intervals = in confide_fit() it has a standard error and
#' an interval, which cover that the rows are a sample and the noise for privacy.
#'
#' @param object A model from confide_fit() or confide_load().
#' @param column Name of a column of the schema.
#' @param first,second Two values of it: numbers between its bounds, or levels.
#' @param level Confidence level of the interval.
#' @param class For three or more classes, the one whose score is meant.
#' @return A data frame with one row: column, first, second, estimate, std.error, low, high; for logistic models also
#'   odds_ratio with its interval. What no part of the budget was kept for is NA.
#' @examples
#' if (confide_available()) {
#'   schema <- confide_schema(x = c(-1, 1), group = c("a", "b"),
#'                            target = list(y = c(negative = 0, positive = 1)))
#'   rows <- data.frame(x = runif(2000, -1, 1), group = sample(c("a", "b"), 2000, replace = TRUE))
#'   rows$y <- as.integer(rows$x + (rows$group == "a") > 0.5)
#'   model <- confide_fit(y ~ x + group, rows, epsilon = 2, schema = schema, model = "logistic")
#'   confide_contrast(model, "x", -0.5, 0.5)
#' }
#' @export
confide_contrast <- function(object, column, first, second, level = 0.95, class = NULL) {
  python <- .python(object)
  module <- reticulate::import("confide.estimators.released", convert = FALSE)
  effects <- .tell(module$effects_of(python))
  found <- .tell(effects$contrast(column, first, second, level = level, label = class))
  ends <- .r(found$interval)
  ends <- if (is.null(ends)) c(NA_real_, NA_real_) else unlist(ends)
  error <- .r(found$standard_error)
  shown <- data.frame(column = column, first = first, second = second, estimate = .r(found$estimate),
                      std.error = if (is.null(error)) NA_real_ else error, low = ends[1], high = ends[2],
                      stringsAsFactors = FALSE)
  ratio <- .ratio(python)
  if (nzchar(ratio)) {
    shown[paste0(gsub(" ", "_", ratio), c("", "_low", "_high"))] <- exp(shown[c("estimate", "low", "high")])
  }
  shown
}

.refuse_without_intervals <- function() {
  stop("nothing was released for intervals: give intervals = \"auto\" to confide_fit().", call. = FALSE)
}

.no_others <- function(...) {
  if (...length() == 0) return(invisible(NULL))
  given <- names(list(...))
  given <- if (is.null(given)) "one without a name" else paste(ifelse(given == "", "one without a name", given), collapse = ", ")
  stop("unknown argument: ", given, ". Known are level, units and target.", call. = FALSE)
}

.summary_table <- function(python, level, units, target) {
  if (!.has_intervals(python)) .refuse_without_intervals()
  table <- .tell(python$summary(level = level, target = target, units = units))
  rows <- lapply(.r(table$to_dict())$coefficients, function(each) {
    each <- lapply(each, function(value) if (is.null(value)) NA else value)
    as.data.frame(each[c("name", "unit", "estimate", "sampling_error", "privacy_error", "total_error", "low", "high",
                         "p_value")])
  })
  rows <- do.call(rbind, rows)
  rows$name <- sub("(intercept)", "(Intercept)", rows$name, fixed = TRUE)
  rows
}

#' @rdname confide_model
#' @export
summary.confide_model <- function(object, level = 0.95, units = NULL, target = NULL, ...) {
  .no_others(...)
  python <- .python(object)
  found <- .coefficients(python, units)
  usual <- if (.has_intervals(python, "_interest")) "unregularised" else "regularised"
  is_asked <- !is.null(target) && target != usual
  table <- if (.has_intervals(python) || is_asked) .summary_table(python, level, units, target) else found$table
  ratio <- .ratio(python)
  if (nzchar(ratio)) {
    names <- intersect(c("estimate", "low", "high"), names(table))
    titles <- paste0(gsub(" ", "_", ratio), c(estimate = "", low = "_low", high = "_high")[names])
    table[titles] <- exp(table[names])
    table[table$name == "(Intercept)" | table$unit == "", titles] <- NA
  }
  structure(list(table = table, ratio = ratio, outcome = found$outcome, level = level, target = if (is_asked) target else usual,
                 formula = object$formula,
                 guarantee = .r(python$guarantee_$statement())), class = "summary.confide_model")
}

#' @rdname confide_model
#' @param row.names,optional Not used; as.data.frame() has them.
#' @export
as.data.frame.summary.confide_model <- function(x, row.names = NULL, optional = FALSE, ...) x$table

#' @export
print.summary.confide_model <- function(x, digits = 4, ...) {
  if (!is.null(x$formula)) cat(deparse(x$formula), "\n")
  cat("Coefficients of ", x$outcome, "\n\n", sep = "")
  table <- x$table
  titles <- c(estimate = "Estimate", sampling_error = "Sampling Err.", privacy_error = "Privacy Err.",
              total_error = "Total Err.", low = "Low", high = "High", p_value = "Pr(>|z|)", unit = "Unit")
  shown <- table[intersect(names(titles), names(table))]
  numeric <- vapply(shown, is.numeric, logical(1))
  shown[numeric] <- lapply(shown[numeric], function(values) format(round(values, digits), nsmall = digits))
  if (!is.null(shown$p_value)) shown$p_value <- format.pval(table$p_value, digits = 3, eps = 1e-4)
  names(shown) <- titles[names(shown)]
  rownames(shown) <- make.unique(table$name)
  print(shown, right = TRUE)
  if (nzchar(x$ratio)) {
    ratios <- table[!is.na(table[[gsub(" ", "_", x$ratio)]]), , drop = FALSE]
    kept <- ratios[startsWith(names(ratios), gsub(" ", "_", x$ratio))]
    kept[] <- lapply(kept, signif, digits)
    names(kept) <- c(paste0(toupper(substr(x$ratio, 1, 1)), substring(x$ratio, 2)), "Low", "High")[seq_along(kept)]
    kept$Unit <- ratios$unit
    rownames(kept) <- make.unique(ratios$name)
    cat("\n")
    print(kept, right = TRUE)
  }
  if (is.null(table$low)) {
    cat("\nNo part of the budget was kept for intervals: give intervals = \"auto\" to confide_fit().\n")
  } else {
    cat("\nIntervals at level ", x$level, ". Errors are due to sampling, to the noise for privacy, and to both.\n", sep = "")
    minimiser <- if (x$target == "regularised") "with the same ridge" else "without a ridge"
    cat("They are for the population's minimiser ", minimiser, ". Sampling errors are themselves estimates under noise.\n",
        sep = "")
  }
  said <- strsplit(x$guarantee, "\n", fixed = TRUE)[[1]]
  cat("\n", paste(strwrap(said[1], 78), collapse = "\n"), "\nIts assumptions are in $guarantee of this summary.\n", sep = "")
  invisible(x)
}

#' @rdname confide_model
#' @export
predict.confide_model <- function(object, newdata, type = NULL, exposure = NULL, ...) {
  python <- .python(object)
  is_classifier <- reticulate::py_has_attr(python, "classes_")
  has_chances <- reticulate::py_has_attr(python, "predict_proba")
  if (is.null(type)) type <- if (is_classifier && !has_chances) "class" else "response"
  type <- match.arg(type, c("response", "class", "link"))
  rows <- .frame(newdata, .columns_of(python$schema))
  if (!is_classifier) {
    if (type == "class") stop("a regression predicts numbers: take type = \"response\".", call. = FALSE)
    named <- .exposure_of(python$schema)
    if (is.null(exposure) && !is.null(named)) {
      if (!named %in% colnames(newdata)) stop("newdata lacks the exposure ", named, "; give it, or exposure = 1.", call. = FALSE)
      exposure <- newdata[[named]]
    }
    counted <- if (is.null(exposure)) list() else list(exposure = if (length(exposure) == 1) exposure else .column(exposure))
    numbers <- .vector(.tell(do.call(python$predict, c(list(rows), counted))))
    return(if (type == "link" && .is_of_counts(python)) log(numbers) else numbers)
  }
  if (type == "class") return(.vector(.tell(python$predict(rows))))
  labels <- .vector(python$classes_)
  positive <- .positive(python, labels)
  if (type == "link") {
    scores <- .vector(.tell(python$decision_function(rows)))
    if (length(labels) > 2) return(structure(as.matrix(scores), dimnames = list(NULL, labels)))
    return(scores * if (positive == 1) -1 else 1)
  }
  if (!has_chances) stop("this model gives no probabilities: take type = \"class\" or \"link\".", call. = FALSE)
  chances <- .vector(.tell(python$predict_proba(rows)))
  if (length(labels) > 2) structure(chances, dimnames = list(NULL, labels)) else chances[, positive]
}

.is_of_counts <- function(python) isTRUE(.r(reticulate::py_get_attr(python, "_has_counts")))

# The position of the class for which probabilities are shown: the schema's positive one.
.positive <- function(python, labels) {
  positive <- .r(python$schema$to_dict())$target$positive
  found <- if (is.null(positive)) NA else match(as.character(positive), as.character(labels))
  if (is.na(found)) 2L else found
}

#' @rdname confide_model
#' @export
plot.confide_model <- function(x, columns, level = 0.95, ...) {
  python <- .python(x)
  effects <- .effects(python, level)
  names <- unique(effects$column)
  columns <- if (missing(columns)) names else columns
  unknown <- setdiff(columns, names)
  if (length(unknown) > 0) {
    stop("columns must be some of ", paste(names, collapse = ", "), ", and not ", .unknown(unknown, names), ".", call. = FALSE)
  }
  limits <- range(0, unlist(effects[intersect(c("effect", "low", "high"), names(effects))]), finite = TRUE)
  lines <- ceiling(length(columns) / 3)
  before <- par(mfrow = c(lines, min(3, length(columns))), mar = c(4, 7, 3, 1))
  on.exit(par(before))
  for (name in columns) .draw_effect(effects[effects$column == name, ], name, limits, ...)
  invisible(effects[effects$column %in% columns, ])
}

# The effects of single columns, as a data frame.
.effects <- function(python, level) {
  module <- reticulate::import("confide.estimators.released", convert = FALSE)
  found <- .r(.tell(module$effects_of(python))$to_dict(level))$effects
  found <- Filter(function(each) length(each$columns) == 1 && is.null(each$class), found)
  if (length(found) == 0) stop("effects can be drawn for models with one score.", call. = FALSE)
  rows <- lapply(found, function(each) {
    values <- lapply(each$values, function(value) {
      value <- lapply(value, function(number) if (is.null(number)) NA else number)
      value$is_number <- is.numeric(value$value)
      value$value <- as.character(value$value)
      as.data.frame(value)
    })
    cbind(column = unlist(each$columns), do.call(rbind, values))
  })
  do.call(rbind, rows)
}

.draw_effect <- function(effect, name, limits, ...) {
  has_band <- !is.null(effect$low) && all(is.finite(effect$low))
  if (any(effect$is_number)) {
    curve <- effect[effect$is_number, ]
    at <- as.numeric(curve$value)
    plot(at, curve$effect, type = "l", lwd = 2, col = "#2a8acb", ylim = limits, xlab = name, ylab = "effect", ...)
    abline(h = 0, col = "grey60")
    if (has_band) {
      lines(at, curve$low, lty = 2, col = "#2a8acb")
      lines(at, curve$high, lty = 2, col = "#2a8acb")
    }
  } else {
    at <- rev(seq_len(nrow(effect)))
    plot(effect$effect, at, pch = 19, col = "#2a8acb", xlim = limits, yaxt = "n", xlab = "effect", ylab = "", ...)
    axis(2, at, effect$value, las = 1, cex.axis = 0.8)
    abline(v = 0, col = "grey60")
    if (has_band) segments(effect$low, at, effect$high, at, lwd = 4, col = "#2a8acb66")
    points(effect$effect, at, pch = 19, col = "#2a8acb")
  }
  title(name)
}
