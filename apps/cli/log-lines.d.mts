export function logsJson(): boolean;
export function renderLogLine(
  program: string,
  message: string,
  level?: 'fatal' | 'error' | 'info',
): string;
export function toTextLines(lines: string[]): string[];
