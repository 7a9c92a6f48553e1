import type { RowTable } from '#event-store/rows.js';
import { poster, type Poster } from './poster.js';
import type { PosterEvent } from './poster.events.js';

export const posterRows: RowTable<Poster, PosterEvent> = { aggregate: poster, table: 'posters' };
