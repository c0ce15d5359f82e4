#' Public knowledge about the columns of a table
#'
#' A schema says what each column may hold. Write it from public knowledge (a codebook, the law, common sense), without
#' looking at the rows: no bound is ever taken from the data.
#'
#' @param ... Either the path of a TOML file, or one argument for each column: c(low, high) for a number, the levels for a
#'   category, or a list with the keys of the TOML file, such as list(low = 0, high = 99999, scale = "log").
#' @param target What is predicted. c(negative = , positive = ) for two classes, several labels for more classes, or
#'   c(low = , high = ) for a number, in a list by the name of its column. Counts may have an exposure:
#'   list(visits = list(low = 0, high = 30, exposure = list(column = "years", low = 0.1, high = 5))).
#' @param person Name of the column that identifies the person, if one person may have several rows.
#' @param weight How much each row counts in a fit: a list of the column of weights, their cap and, if it is public, their
#'   mean, such as list(column = "design_weight", high = 20, mean = 3.9).
#' @param interact A list of vectors of names of columns whose effects depend on each other.
#' @return A schema of the Python library.
#' @examples
#' if (confide_available()) {
#'   confide_schema(age = c(17, 90), sex = c("Female", "Male"),
#'                  target = list(income = c(negative = "<=50K", positive = ">50K")))
#' }
#' @export
confide_schema <- function(..., target = NULL, person = NULL, weight = NULL, interact = list()) {
  confide <- .confide()
  columns <- list(...)
  if (length(columns) == 1 && is.null(names(columns)) && is.character(columns[[1]]) && length(columns[[1]]) == 1) {
    return(.tell(confide$Schema$from_toml(columns[[1]])))
  }
  if (length(columns) == 0 || is.null(names(columns)) || any(names(columns) == "")) {
    stop("give the path of a TOML file, or a description for each column by its name: age = c(17, 90).", call. = FALSE)
  }
  described <- list(columns = lapply(columns, .described))
  if (!is.null(target)) described$target <- .target(target)
  if (!is.null(person)) described$person <- person
  if (!is.null(weight)) described$weight <- weight
  if (length(interact) > 0) described$interact <- lapply(unname(interact), as.list)
  .tell(confide$Schema$from_dict(reticulate::r_to_py(described)))
}

.described <- function(column) {
  if (is.list(column)) {
    if (!is.null(column$categories)) column$categories <- as.list(.labels(unlist(column$categories)))
    # Codes that stand for missing cells.
    if (length(column$missing) > 0 && !is.logical(column$missing)) column$missing <- as.list(.labels(unlist(column$missing)))
    if (length(column$knots) > 1) column$knots <- as.list(column$knots)
    if (length(column$knots) == 1) column$knots <- as.integer(column$knots)
    return(column)
  }
  if (is.factor(column)) column <- levels(column)
  if (is.numeric(column) && length(column) == 2) return(list(low = column[[1]], high = column[[2]]))
  list(categories = as.list(.labels(unname(column))))
}

# Whole numbers among labels are written without a decimal point.
.labels <- function(labels) {
  if (is.factor(labels)) labels <- as.character(labels)
  if (is.numeric(labels) && all(labels == round(labels))) storage.mode(labels) <- "integer"
  labels
}

.target <- function(target) {
  if (!is.list(target) || length(target) != 1 || is.null(names(target))) {
    stop('give the target by the name of its column: target = list(income = c(negative = "<=50K", positive = ">50K")).',
         call. = FALSE)
  }
  labels <- target[[1]]
  column <- list(column = names(target))
  if (is.null(names(labels)) && length(labels) == 2) {
    pair <- if (is.numeric(labels)) labels else paste0('"', labels, '"')
    what <- if (is.numeric(labels)) sprintf("c(low = %s, high = %s) for a number with these bounds, or ", pair[1], pair[2]) else ""
    stop("say what the two values of the target ", names(target), " are: ", what,
         sprintf("c(negative = %s, positive = %s) for two classes.", pair[1], pair[2]), call. = FALSE)
  }
  if (is.null(names(labels))) return(c(column, list(classes = as.list(.labels(labels)))))
  if ("low" %in% names(labels)) c(column, as.list(labels)) else c(column, as.list(.labels(labels)))
}

# The columns that a formula names, of those that a schema describes, with the interactions that it adds.
.with_formula <- function(schema, formula, data) {
  described <- .r(schema$to_dict())
  known <- names(described$columns)
  target <- described$target$column
  # A dot stands for all columns of the schema.
  empty <- as.data.frame(stats::setNames(rep(list(logical(0)), length(known) + 1), c(known, target %||% ".target")),
                         optional = TRUE)
  parts <- stats::terms(formula, data = empty)
  response <- NULL
  if (attr(parts, "response") == 1) {
    if (!is.name(formula[[2]])) {
      stop("the left side of the formula must be a column as it is, and not ", paste(deparse(formula[[2]]), collapse = ""),
           ": transform the column before the fit, and say so in the schema.", call. = FALSE)
    }
    response <- as.character(formula[[2]])
  }
  if (attr(parts, "intercept") == 0) {
    stop("a formula without an intercept says so as fit_intercept = FALSE, and not by - 1.", call. = FALSE)
  }
  if (!is.null(target) && !identical(response, target)) {
    stop("the left side of the formula must be ", target, ", the target of the schema.", call. = FALSE)
  }
  if (length(response) != 1) stop("the left side of the formula must be one column.", call. = FALSE)
  .check_offset(parts, described$target)
  factors <- lapply(strsplit(attr(parts, "term.labels"), ":", fixed = TRUE), function(names) gsub("`", "", names))
  unknown <- setdiff(unlist(factors), known)
  if (length(unknown) > 0) {
    stop("the schema does not describe these terms of the formula: ", .unknown(unknown, known),
         ". Bend numbers by knots in the schema, not by functions in the formula.", call. = FALSE)
  }
  used <- unique(unlist(factors))
  if (length(used) == 0) stop("the right side of the formula must name columns of the schema.", call. = FALSE)
  described$columns <- described$columns[known[known %in% used]]
  products <- Filter(function(names) length(names) > 1, factors)
  kept <- Filter(function(each) all(unlist(if (is.null(each$columns)) each else each$columns) %in% used),
                 .as_lists(described$interact))
  described$interact <- c(kept, lapply(products, as.list))
  described$columns <- lapply(described$columns, .described)
  if (!is.null(described$target$classes)) described$target$classes <- as.list(described$target$classes)
  if (length(described$interact) == 0) described$interact <- NULL
  list(schema = .tell(.confide()$Schema$from_dict(reticulate::r_to_py(described))), response = response)
}

# An offset is the logarithm of the exposure that the schema names, with its public bounds.
.check_offset <- function(parts, target) {
  places <- attr(parts, "offset")
  if (is.null(places)) return(invisible(NULL))
  given <- vapply(as.list(attr(parts, "variables"))[-1][places], function(term) paste(deparse(term), collapse = ""), "")
  exposure <- target$exposure$column
  wanted <- if (is.null(exposure)) NULL else sprintf("offset(log(%s))", exposure)
  if (identical(unname(given), wanted)) return(invisible(NULL))
  if (is.null(wanted)) {
    stop(given[1], " needs an exposure in the target of the schema, with its public bounds: target = list(", target$column,
         " = list(low = 0, high = 30, exposure = list(column = \"years\", low = 0.1, high = 5))).", call. = FALSE)
  }
  stop("the offset of the formula must be ", wanted, ", the exposure of the schema.", call. = FALSE)
}

.as_lists <- function(interact) {
  lapply(interact, function(each) if (is.list(each)) { each$columns <- as.list(each$columns); each } else as.list(each))
}

`%||%` <- function(left, right) if (is.null(left)) right else left
