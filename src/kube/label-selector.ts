/**
 * Label selectors in the syntax of `kubectl get -l`, evaluated here: the API server could do it only for a list of its own.
 * Grammar and meaning follow k8s.io/apimachinery/pkg/labels/selector.go.
 */

export interface LabelSelector {
  /** As it was given. */
  readonly text: string;
  /** All of them must hold. */
  readonly requirements: readonly LabelRequirement[];
  /** Whether an object with these labels is selected. */
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
}

/** One part of a selector, in the words of the API's own LabelSelector, which has no `Gt` and `Lt`. */
interface LabelRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  /** Of `Gt` and `Lt` one whole number, of `Exists` and `DoesNotExist` none. */
  readonly values: readonly string[];
}

/** Not a label selector. `position` counts characters from 1. */
export class LabelSelectorError extends Error {
  override readonly name = 'LabelSelectorError';
  readonly position: number;

  constructor(problem: string, position: number) {
    super(`${problem} at character ${position}`);
    this.position = position;
  }
}

type Labels = Readonly<Record<string, string>>;

interface Token {
  readonly text: string;
  /** From 1. */
  readonly position: number;
  readonly word: boolean;
}

/** An operator or punctuation mark, or else a word: anything up to the next of those or white space. */
const lexeme = /\s*(?:(==|!=|[=!(),<>])|([^\s=!(),<>]+))/y;

const end = 'the end';

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const trimmed = text.trimEnd();
  lexeme.lastIndex = 0;
  while (lexeme.lastIndex < trimmed.length) {
    const match = lexeme.exec(trimmed);
    // Cannot happen: every character that is neither white space nor a mark is part of a word.
    if (match === null) break;
    const found = match[1] ?? match[2] ?? '';
    tokens.push({ text: found, position: lexeme.lastIndex - found.length + 1, word: match[2] !== undefined });
  }
  return tokens;
}

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** A label's key: `name` or `dns.subdomain/name`. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  const prefix = slash === -1 ? undefined : text.slice(0, slash);
  const name = text.slice(slash + 1);
  if (prefix !== undefined && (prefix.length > 253 || !prefixPart.test(prefix))) return false;
  return name.length <= 63 && namePart.test(name);
}

/** A label's value, which may be empty. */
export function isLabelValue(text: string): boolean {
  return text === '' || (text.length <= 63 && namePart.test(text));
}

/** Own properties only: a label may be called `constructor`. */
function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

const wholeNumber = /^-?\d{1,15}$/;

function holds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = labelOf(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      // A missing label is not in any set, so `notin` and `!=` select it.
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      // A label that is no number is neither above nor below one.
      if (value === undefined || !wholeNumber.test(value)) return false;
      const bound = Number(values[0]);
      return operator === 'Lt' ? Number(value) < bound : Number(value) > bound;
    }
  }
}

/** Reads tokens left to right; each method takes what it names or says what it found instead. */
class Parser {
  readonly #tokens: readonly Token[];
  readonly #endPosition: number;
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
    this.#endPosition = text.length + 1;
  }

  selector(): LabelRequirement[] {
    // Nothing at all selects everything, as in Kubernetes.
    if (this.#peek() === undefined) return [];
    const requirements = [this.#requirement()];
    while (this.#peek() !== undefined) {
      this.#take(',');
      requirements.push(this.#requirement());
    }
    return requirements;
  }

  #requirement(): LabelRequirement {
    if (this.#peek()?.text === '!') {
      this.#next += 1;
      return { key: this.#key(), operator: 'DoesNotExist', values: [] };
    }
    const key = this.#key();
    const operator = this.#peek();
    switch (operator?.text) {
      case undefined:
      case ',':
        return { key, operator: 'Exists', values: [] };
      case '=':
      case '==':
        return { key, operator: 'In', values: this.#oneValue() };
      case '!=':
        return { key, operator: 'NotIn', values: this.#oneValue() };
      case '<':
        return { key, operator: 'Lt', values: this.#number() };
      case '>':
        return { key, operator: 'Gt', values: this.#number() };
      case 'in':
        return { key, operator: 'In', values: this.#set() };
      case 'notin':
        return { key, operator: 'NotIn', values: this.#set() };
      default:
        throw this.#unexpected("',', '=', '==', '!=', '<', '>', 'in' or 'notin'");
    }
  }

  #oneValue(): string[] {
    this.#next += 1;
    return [this.#value()];
  }

  #set(): string[] {
    this.#next += 1;
    this.#take('(');
    const values = [this.#value()];
    while (this.#peek()?.text === ',') {
      this.#next += 1;
      values.push(this.#value());
    }
    this.#take(')');
    return values;
  }

  #number(): string[] {
    this.#next += 1;
    const token = this.#peek();
    if (token?.word !== true || !wholeNumber.test(token.text)) throw this.#unexpected('a whole number');
    this.#next += 1;
    return [token.text];
  }

  #key(): string {
    const token = this.#peek();
    // `in` and `notin` are reserved where a key may stand.
    if (token?.word !== true || token.text === 'in' || token.text === 'notin' || !isLabelKey(token.text)) {
      throw this.#unexpected('a label key');
    }
    this.#next += 1;
    return token.text;
  }

  /** A value left out is the empty one: `key=`, `key in (,a)`. */
  #value(): string {
    const token = this.#peek();
    if (token?.word !== true) return '';
    if (!isLabelValue(token.text)) throw this.#unexpected('a label value');
    this.#next += 1;
    return token.text;
  }

  #take(mark: string): void {
    if (this.#peek()?.text !== mark) throw this.#unexpected(`'${mark}'`);
    this.#next += 1;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  #unexpected(expected: string): LabelSelectorError {
    const token = this.#peek();
    const found = token === undefined ? end : JSON.stringify(token.text.slice(0, 64));
    return new LabelSelectorError(`expected ${expected}, found ${found}`, token?.position ?? this.#endPosition);
  }
}

/** Throws LabelSelectorError with what was expected and where. The empty text selects everything. */
export function parseLabelSelector(text: string): LabelSelector {
  const requirements = new Parser(text).selector();
  return {
    text,
    requirements,
    matches: (labels) => requirements.every((requirement) => holds(requirement, labels)),
  };
}
