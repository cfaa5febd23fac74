//! Planting: what is changed in a file, and how. Every change keeps the types, so that the original
//! and the mutant can stand side by side in an `if`.

use proc_macro2::Span;
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, ImplItemFn, ItemFn, ReturnType, Signature, Stmt, Type, parse_quote};

/// Functions that check or tell, and decide nothing.
const SPARED: [&str; 7] =
    ["check", "check_all", "describe", "describe_groups", "say", "write", "fmt"];

/// A mistake that was planted.
pub struct Mutant {
    pub number: u32,
    pub file: String,
    pub line: usize,
    pub what: String,
}

impl Mutant {
    /// Where it is and what it is, as it is reported, contains a text.
    pub fn is_like(&self, text: &str) -> bool {
        format!("{}:{} {}", self.file, self.line, self.what).contains(text)
    }
}

/// The file with its mutants but for those that were left out; they are added to `mutants`, which
/// are numbered from one on through all files.
pub fn plant(
    file: &str,
    source: &str,
    left_out: &BTreeSet<u32>,
    mutants: &mut Vec<Mutant>,
) -> syn::Result<String> {
    let mut parsed = syn::parse_file(source)?;
    let mut planter = Planter { file, left_out, mutants };
    planter.visit_file_mut(&mut parsed);
    Ok(prettyplease::unparse(&parsed))
}

struct Planter<'p> {
    file: &'p str,
    left_out: &'p BTreeSet<u32>,
    mutants: &'p mut Vec<Mutant>,
}

impl Planter<'_> {
    /// A number for a mutant, unless it is left out.
    fn number(&mut self, at: Span, what: &str) -> Option<u32> {
        let number = self.mutants.len() as u32 + 1;
        let (file, line) = (self.file.to_owned(), at.start().line);
        self.mutants.push(Mutant { number, file, line, what: what.to_owned() });
        (!self.left_out.contains(&number)).then_some(number)
    }

    /// Puts what a function could return instead at its beginning; `is` is what it is, if it is no
    /// more than a value.
    fn plant_returns(&mut self, signature: &Signature, block: &mut Block, is: Option<&str>) {
        let instead: Vec<Expr> = match &signature.output {
            ReturnType::Default => vec![parse_quote!(())],
            ReturnType::Type(_, of) => values_of(of),
        };
        let is_other = |value: &Expr| is != Some(value.to_token_stream().to_string().as_str());
        for value in instead.into_iter().filter(is_other).rev() {
            let what = format!("{} returns {}", signature.ident, value.to_token_stream());
            if let Some(number) = self.number(signature.ident.span(), &what) {
                let early: Stmt = parse_quote!(if crate::planted::on(#number) { return #value; });
                block.stmts.insert(0, early);
            }
        }
    }

    fn is_spared(&self, signature: &Signature) -> bool {
        let name = signature.ident.to_string();
        signature.constness.is_some() || SPARED.contains(&name.as_str())
    }
}

/// A block that does nothing but yield something.
fn value_of(block: &Block) -> Option<String> {
    match block.stmts.as_slice() {
        [Stmt::Expr(value, None)] => Some(value.to_token_stream().to_string()),
        _ => None,
    }
}

fn values_of(of: &Type) -> Vec<Expr> {
    let name = of.to_token_stream().to_string();
    match name.as_str() {
        "bool" => vec![parse_quote!(true), parse_quote!(false)],
        "i64" | "u32" | "u64" => vec![parse_quote!(0), parse_quote!(1)],
        _ if name.starts_with("Option <") => vec![parse_quote!(None)],
        _ => Vec::new(),
    }
}

/// What stands in place of an operator.
fn other_operator(operator: &BinOp) -> Vec<BinOp> {
    match operator {
        BinOp::Lt(_) => vec![parse_quote!(<=)],
        BinOp::Le(_) => vec![parse_quote!(<)],
        BinOp::Gt(_) => vec![parse_quote!(>=)],
        BinOp::Ge(_) => vec![parse_quote!(>)],
        BinOp::Eq(_) => vec![parse_quote!(!=)],
        BinOp::Ne(_) => vec![parse_quote!(==)],
        BinOp::And(_) => vec![parse_quote!(||)],
        BinOp::Or(_) => vec![parse_quote!(&&)],
        BinOp::Add(_) => vec![parse_quote!(-)],
        BinOp::Sub(_) => vec![parse_quote!(+)],
        BinOp::Mul(_) => vec![parse_quote!(+)],
        BinOp::Div(_) => vec![parse_quote!(*)],
        BinOp::AddAssign(_) => vec![parse_quote!(-=)],
        BinOp::SubAssign(_) => vec![parse_quote!(+=)],
        BinOp::MulAssign(_) => vec![parse_quote!(+=)],
        BinOp::DivAssign(_) => vec![parse_quote!(*=)],
        BinOp::BitOrAssign(_) => vec![parse_quote!(&=)],
        _ => Vec::new(),
    }
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

impl VisitMut for Planter<'_> {
    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if module.ident != "tests" {
            visit_mut::visit_item_mod_mut(self, module);
        }
    }

    fn visit_item_fn_mut(&mut self, function: &mut ItemFn) {
        if !self.is_spared(&function.sig) {
            let is = value_of(&function.block);
            self.visit_block_mut(&mut function.block);
            self.plant_returns(&function.sig, &mut function.block, is.as_deref());
        }
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        if !self.is_spared(&function.sig) {
            let is = value_of(&function.block);
            self.visit_block_mut(&mut function.block);
            self.plant_returns(&function.sig, &mut function.block, is.as_deref());
        }
    }

    // Nothing can be switched in these.
    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_item_enum_mut(&mut self, _: &mut syn::ItemEnum) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_expr_repeat_mut(&mut self, _: &mut syn::ExprRepeat) {}

    /// Statements that do something and yield nothing are left away.
    fn visit_block_mut(&mut self, block: &mut Block) {
        visit_mut::visit_block_mut(self, block);
        for statement in &mut block.stmts {
            let Stmt::Expr(expression, Some(_)) = statement else { continue };
            let goes = match expression {
                // Variables may get their first values in assignments.
                Expr::Assign(it) => matches!(*it.left, Expr::Field(_) | Expr::Index(_)),
                Expr::MethodCall(_) | Expr::Call(_) => true,
                _ => false,
            };
            if !goes {
                continue;
            }
            let text = expression.to_token_stream().to_string();
            // Messages decide nothing.
            let says = ["self . say", "cx . message", "cx . group_message"];
            if says.iter().any(|call| text.starts_with(call)) {
                continue;
            }
            let short: String = text.chars().take(60).collect();
            if let Some(number) = self.number(expression.span(), &format!("without: {short}")) {
                *statement = parse_quote!(if !crate::planted::on(#number) { #statement });
            }
        }
    }

    fn visit_expr_if_mut(&mut self, branch: &mut syn::ExprIf) {
        // An operator has mutants of its own.
        let is_left = has_let(&branch.cond) || matches!(*branch.cond, Expr::Binary(_));
        visit_mut::visit_expr_if_mut(self, branch);
        if is_left {
            return;
        }
        if let Some(number) = self.number(branch.if_token.span(), "the other branch") {
            let condition = &branch.cond;
            *branch.cond = parse_quote!((#condition) != crate::planted::on(#number));
        }
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let span = expression.span();
        visit_mut::visit_expr_mut(self, expression);
        match expression {
            Expr::Binary(both) if !has_let(&both.left) && !has_let(&both.right) => {
                let (left, operator, right) = (&both.left, &both.op, &both.right);
                for other in other_operator(operator) {
                    let what = format!(
                        "{} instead of {}",
                        other.to_token_stream(),
                        operator.to_token_stream()
                    );
                    if let Some(number) = self.number(operator.span(), &what) {
                        *expression = parse_quote!(
                            (if crate::planted::on(#number) {
                                (#left) #other (#right)
                            } else {
                                (#left) #operator (#right)
                            })
                        );
                        return;
                    }
                }
            }
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
                let inner = &unary.expr;
                if let Some(number) = self.number(span, "without !") {
                    *expression = parse_quote!(((#inner) == crate::planted::on(#number)));
                }
            }
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Bool(value) => {
                    let other = !value.value;
                    if let Some(number) = self.number(span, &format!("{other} instead")) {
                        *expression = parse_quote!((#value != crate::planted::on(#number)));
                    }
                }
                syn::Lit::Int(value) if value.suffix().is_empty() => {
                    let Ok(other) = value.base10_parse::<u64>().map(|value| value + 1) else {
                        return;
                    };
                    let other = proc_macro2::Literal::u64_unsuffixed(other);
                    let what = format!("{other} instead of {value}");
                    if let Some(number) = self.number(span, &what) {
                        *expression = parse_quote!(
                            (if crate::planted::on(#number) { #other } else { #value })
                        );
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
}
