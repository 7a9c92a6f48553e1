import type { Translations } from '../en.js';

export const brand: Translations['brand'] = {
  title: 'Marca',
  intro:
    'Su logotipo y cómo contactarle: en tarjetas, pases, la página de registro, carteles y mensajes.',
  logo: {
    title: 'Logotipo',
    none: 'Todavía no hay logotipo. En su lugar aparece el icono de los sellos.',
    file: 'Imagen',
    hint: 'PNG, JPEG o WebP, como máximo 2 MB. Lo mejor es un PNG con fondo transparente.',
    upload: 'Subir',
    replace: 'Reemplazar el logotipo',
    remove: 'Quitar el logotipo',
    missing: 'Elija una imagen.',
    wrongType: 'Elija una imagen PNG, JPEG o WebP.',
  },
  colors: {
    title: 'Colores de su logotipo',
    why: 'Tres propuestas para una tarjeta. Podrá cambiar cada color después.',
    choose: 'Propuesta',
    names: ['Intensa', 'Clara', 'Oscura'],
    card: 'Tarjeta',
    apply: 'Usar estos colores',
    missing: 'Elija una de las propuestas.',
  },
  contact: {
    why: 'En el reverso de los pases y debajo de la tarjeta en el navegador. Un campo vacío no se muestra.',
    optional: 'opcional',
    hints: {
      website: 'Por ejemplo cafe.example',
      address: 'Puede tener varias líneas.',
      terms_text: 'Lo que los clientes deben saber, por ejemplo «un sello por bebida».',
    },
    save: 'Guardar',
  },
  done: {
    logo: 'El logotipo se usa desde ahora.',
    removed: 'El logotipo se ha quitado.',
    colors: 'La tarjeta tiene sus nuevos colores.',
    contact: 'Guardado.',
  },
};
