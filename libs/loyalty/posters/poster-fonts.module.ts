import { Module } from '@nestjs/common';
import { NotoFonts } from './noto-fonts.service.js';
import { PosterFonts } from './poster-fonts.service.js';

/** Provides the fonts of posters. */
@Module({ providers: [NotoFonts, PosterFonts], exports: [PosterFonts] })
export class PosterFontsModule {}
